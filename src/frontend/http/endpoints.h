// What is behind the paths, but for a plain check, which has a faster way of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <weir/engine.h>
#include <weir/result.h>

#include "frontend/desk.h"
#include "frontend/http/decision_reply.h"
#include "frontend/http/request_body.h"
#include "frontend/http/routes.h"
#include "frontend/http/workbench.h"
#include "net/byte_buffer.h"

namespace weir {

// How a question's answer is told.
enum class AnswerStyle : std::uint8_t {
  kDecision,   // By its status, too.
  kStatement,  // 200, whatever was decided.
  kLimit,      // As kDecision, of a limit that came with the request.
  kBatchItem,  // With others, in a list.
};

struct EndpointReply {
  int status = 200;
  std::uint32_t decided = 0;
};

// Answers one request, whole, into `out`.
class HttpEndpoints {
 public:
  struct Call {
    HttpEndpoint endpoint;
    std::string_view query{};
    RequestBodyReader::Text body{};
    ReplyForm form{};
  };

  HttpEndpoints(Desk& desk, HttpWorkbench& bench, ByteBuffer& out) noexcept
      : desk_(desk), bench_(bench), out_(out), now_(desk.loop.now()) {}

  // At once: the desk's store is in this process, or the path asks nothing of it.
  EndpointReply Serve(const Call& call);
  EndpointReply Refuse(const Error& error, const ReplyForm& form);

  // --- For paths that ask something of the store. ---

  // Whether a path does, by one question.
  static bool IsQuestion(HttpEndpoint endpoint) noexcept;
  static AnswerStyle StyleOf(HttpEndpoint endpoint) noexcept;
  // None if it was read. The question refers to the bench, and to the limits of the desk.
  std::optional<Error> ReadQuestion(const Call& call, Question& question);
  // The same for a list of checks, which refer to `bodies` and to the bench.
  std::optional<Error> ReadBatch(const Call& call, std::vector<RequestBody>& bodies,
                                 std::vector<BatchRequest>& batch);

  struct AnswerForm {
    AnswerStyle style = AnswerStyle::kDecision;
    Duration window{0};  // kLimit: Limit::refill_time.
    ReplyForm form{};
  };
  EndpointReply Answer(const Told& told, const AnswerForm& form);
  EndpointReply AnswerBatch(std::span<const Decision> decisions, const ReplyForm& form);

 private:
  EndpointReply ServeQuestion(const Call& call);
  EndpointReply ServeBatch(const Call& call);
  std::optional<Error> ReadLimit(Question& question);
  EndpointReply Top(const Call& call);
  EndpointReply Readiness(const ReplyForm& form);
  EndpointReply Text(std::string_view type, std::string_view text, const ReplyForm& form,
                     int status = 200);

  // None if it was read, into the bench.
  std::optional<Error> ReadBody(const Call& call, const RequestBodyReader::Form& form);

  Desk& desk_;
  HttpWorkbench& bench_;
  ByteBuffer& out_;
  const Now now_;
};

}  // namespace weir
