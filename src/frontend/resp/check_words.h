// The words of WEIR.CHECK and of those who take the same:
//
//   WEIR.CHECK per-user user ann path /orders header.x-plan gold @cost 3 @wait_ms 500 @http json
//
// A rule, or * for all of them; then names and values in any order. Those with @ are options, the
// others attributes of the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <weir/request.h>
#include <weir/result.h>
#include <weir/time.h>

#include "base/inline_vector.h"
#include "frontend/resp/decision_reply.h"

namespace weir::resp {

// Room for attributes that have names of their own, of several commands.
class NamedValues {
 public:
  static constexpr std::size_t kMostOfAKind = 64;  // In one command.
  using Kind = InlineVector<NamedValue, 4 * kMostOfAKind>;

  NamedValues() noexcept {}  // NOLINT: `= default` would have the room filled with zeros

  // Whether any command finds room.
  bool HasRoom() const noexcept {
    for (const Kind& kind : kinds_) {
      if (kind.size() > 3 * kMostOfAKind) return false;
    }
    return true;
  }
  void Clear() noexcept {
    for (Kind& kind : kinds_) {
      while (!kind.empty()) kind.pop_back();
    }
  }
  Kind& operator[](std::size_t kind) noexcept { return kinds_[kind]; }

 private:
  Kind kinds_[4];
};

// What the options say.
struct CheckTerms {
  std::int64_t cost = 1;
  Duration wait{0};
  Duration ttl = std::chrono::seconds(60);
  HttpForm http = HttpForm::kNone;
};

// Which options a command takes.
struct CheckOptions {
  bool cost = true;
  bool wait = false;
  bool ttl = false;
  bool http = false;
};

// `words` from the rule on. Fills in a request that is as it was made: it is large, so it is read
// where it will stay. It refers to the words and to `values`. The name of the rule is not looked
// up.
Result<CheckTerms> ReadCheckWords(std::span<const std::string_view> words,
                                  const CheckOptions& options, NamedValues& values,
                                  Request& request);

// "@cost": a whole number from 0 to kMaxCount.
Result<std::int64_t> ReadCost(std::string_view text);

// "@http": json or problem.
Result<HttpForm> ReadHttpForm(std::string_view text);

}  // namespace weir::resp
