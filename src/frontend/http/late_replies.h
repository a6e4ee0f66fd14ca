// The HTTP replies of one connection that come later, because the store is shared or because their
// requests wait. What their requests wanted is kept until then: most of it in one number that goes
// with the question,
//
//   bits 0, 1     HttpPersistence
//   bit 2         application/problem+json
//   bits 3, 4     AnswerStyle
//   bits 5 to 14  which item of a batch
//   bits 15 on    the number of the request
//
// and in a record what does not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "frontend/http/endpoints.h"
#include "frontend/http/workbench.h"
#include "frontend/protocol.h"

namespace weir {

struct LateTag {
  ReplyForm form{};  // But for without_body: only what is sent by POST is asked.
  AnswerStyle style = AnswerStyle::kDecision;
  std::uint64_t item = 0;
  std::uint64_t number = 0;

  std::uint64_t bits() const noexcept {
    return static_cast<std::uint64_t>(form.persistence) | (form.problem ? 4U : 0U) |
           (static_cast<std::uint64_t>(style) << 3U) | (item << 5U) | (number << 15U);
  }
  static LateTag Of(std::uint64_t bits) noexcept {
    return {.form = {.persistence = static_cast<HttpPersistence>(bits & 3U),
                     .problem = (bits & 4U) != 0},
            .style = static_cast<AnswerStyle>((bits >> 3U) & 3U),
            .item = (bits >> 5U) & 1023U,
            .number = bits >> 15U};
  }
};

class LateReplies {
 public:
  explicit LateReplies(Exchange& exchange) noexcept : exchange_(exchange) {}

  // --- These hold the next place among the replies. ---

  void Wait(const PendingCheck& check);
  // For an exchange whose desk has questions.
  void AskCheck(const PendingCheck& check);
  struct Call {
    const HttpEndpoints::Call& http;
    std::uint64_t number = 0;  // Of the request.
  };
  // The error if nothing was asked, and no place is held.
  std::optional<Error> Ask(HttpEndpoints& endpoints, const Call& call);

  // The status of the reply in this place, if this answer made it complete. `form` is that of the
  // tag, or what has become of it.
  std::optional<int> Fill(const ReplyPlace& place, const ReplyForm& form, const Told& told);

 private:
  struct Record {
    Duration window{0};               // Of a limit.
    std::vector<Decision> decisions;  // Of a batch.
    std::size_t missing = 0;          // Of these.
  };

  std::optional<Error> AskBatch(HttpEndpoints& endpoints, const Call& call);
  std::optional<int> FillBatch(const ReplyPlace& place, const ReplyForm& form, const Told& told);

  Exchange& exchange_;
  std::unordered_map<std::uint64_t, Record> records_;  // By the numbers of their requests.
};

}  // namespace weir
