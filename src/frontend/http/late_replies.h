// The HTTP replies of one connection that come later, because the store is shared or because their
// requests wait. What their requests wanted is kept until then: most of it in one number that goes
// with the question,
//
//   bits 0, 1     HttpPersistence
//   bit 2         application/problem+json
//   bit 3         to HEAD
//   bits 4, 5     forward-auth, and whether it denies by 403
//   bits 6, 7     AnswerStyle
//   bits 8 to 17  which item of a batch
//   bits 18 on    the number of the request
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
  ReplyForm form{};
  AnswerStyle style = AnswerStyle::kDecision;
  std::uint64_t item = 0;
  std::uint64_t number = 0;

  std::uint64_t bits() const noexcept {
    return static_cast<std::uint64_t>(form.persistence) | (form.problem ? 4U : 0U) |
           (form.without_body ? 8U : 0U) | (form.is_auth ? 16U : 0U) |
           (form.denies_by_403 ? 32U : 0U) | (static_cast<std::uint64_t>(style) << 6U) |
           (item << 8U) | (number << 18U);
  }
  static LateTag Of(std::uint64_t bits) noexcept {
    return {.form = {.persistence = static_cast<HttpPersistence>(bits & 3U),
                     .problem = (bits & 4U) != 0,
                     .without_body = (bits & 8U) != 0,
                     .is_auth = (bits & 16U) != 0,
                     .denies_by_403 = (bits & 32U) != 0},
            .style = static_cast<AnswerStyle>((bits >> 6U) & 3U),
            .item = (bits >> 8U) & 1023U,
            .number = bits >> 18U};
  }
};

class LateReplies {
 public:
  explicit LateReplies(Exchange& exchange) noexcept : exchange_(exchange) {}
  LateReplies(const LateReplies&) = delete;
  LateReplies& operator=(const LateReplies&) = delete;
  // Nobody will be told of batches that are half answered: their places are given back.
  ~LateReplies();

  // --- These hold the next place among the replies. ---

  void Wait(const PendingCheck& check);
  // For queues only, as long as check.body.wait.
  void Queue(const PendingCheck& check);
  // For an exchange whose desk asks later.
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
