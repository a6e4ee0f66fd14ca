// Decisions and errors as HTTP replies: status, rate-limit headers and JSON body. Every status,
// header name and field that a client may see of a decision is written here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <weir/engine.h>
#include <weir/result.h>

#include "frontend/decision_http.h"
#include "frontend/settings.h"
#include "net/byte_buffer.h"
#include "net/http/date_line.h"
#include "net/http/response_writer.h"

namespace weir {

// How a reply is to look, which follows from its request.
struct ReplyForm {
  HttpPersistence persistence = HttpPersistence::kDefault;
  bool problem = false;       // As application/problem+json, where there is one: RFC 9457.
  bool without_body = false;  // HEAD.
  // To a proxy that asks for somebody else: nothing to read if it may pass, and the reason in a
  // header if not, because proxies can copy headers, but seldom read bodies.
  bool is_auth = false;
  bool denies_by_403 = false;  // Where it would be 429: nginx passes on no other.
};

// Writes replies of one thread.
class ReplyWriter {
 public:
  // What the replies from now on say when they were made.
  void SetTime(WallTime now) noexcept {
    date_.SetTo(std::chrono::floor<std::chrono::seconds>(now));
  }
  std::string_view date() const noexcept { return date_.text(); }

  // To who asked whether they may: the status says it, too. Returns the status.
  int Decide(ByteBuffer& out, const DecisionReply& reply, const Settings& settings,
             const ReplyForm& form);
  // To who asked about, or did something else: 200, whatever the decision is.
  void Tell(ByteBuffer& out, const DecisionReply& reply, const ReplyForm& form);

  struct ErrorReply {
    int status = 400;
    std::string_view name{};  // Of the error table.
    std::string_view message{};
    std::string_view header{};  // Whole lines.
  };
  void Refuse(ByteBuffer& out, const ErrorReply& error, const ReplyForm& form);

 private:
  ByteBuffer body_;
  HttpDateLine date_;
  DecisionLines lines_;
};

}  // namespace weir
