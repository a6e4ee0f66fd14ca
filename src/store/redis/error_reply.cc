#include "store/redis/error_reply.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "store/redis/slots.h"

namespace weir::redis {
namespace {

struct Row {
  std::string_view word;
  Remedy remedy;
  StoreFault fault;
};

constexpr std::array kRows = {
    Row{"NOSCRIPT", Remedy::kSendText, StoreFault::kOther},
    Row{"MOVED", Remedy::kGoThere, StoreFault::kClusterDown},
    Row{"ASK", Remedy::kAskThere, StoreFault::kClusterDown},
    Row{"TRYAGAIN", Remedy::kTryAgain, StoreFault::kClusterDown},
    Row{"CLUSTERDOWN", Remedy::kNone, StoreFault::kClusterDown},
    Row{"READONLY", Remedy::kRediscover, StoreFault::kReadOnly},
    Row{"LOADING", Remedy::kNone, StoreFault::kLoading},
    Row{"MASTERDOWN", Remedy::kNone, StoreFault::kLoading},
    Row{"BUSY", Remedy::kNone, StoreFault::kBusy},
    Row{"OOM", Remedy::kNone, StoreFault::kNoMemory},
    Row{"MISCONF", Remedy::kNone, StoreFault::kNotWritable},
    Row{"NOREPLICAS", Remedy::kNone, StoreFault::kNotWritable},
    Row{"NOAUTH", Remedy::kNone, StoreFault::kCredentials},
    Row{"WRONGPASS", Remedy::kNone, StoreFault::kCredentials},
    Row{"NOPERM", Remedy::kNone, StoreFault::kCredentials},
};

std::string_view TakeWord(std::string_view& text) noexcept {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <typename Number>
std::optional<Number> ReadNumber(std::string_view text) noexcept {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// What a command within a script failed with. Redis 6.2 puts in front where that was: "ERR Error
// running script (call to f_1f8a): @user_script:3: @user_script: 3: -OOM command not allowed".
std::string_view WithoutScript(std::string_view text) noexcept {
  constexpr std::string_view kBegin = "ERR Error running script";
  constexpr std::string_view kMark = ": -";
  if (!text.starts_with(kBegin)) return text;
  const std::size_t at = text.find(kMark);
  return at == std::string_view::npos ? text : text.substr(at + kMark.size());
}

// "3999 127.0.0.1:6381", "3999 :6381", "3999 ::1:6381", "3999 ?:0". False if it is none of them.
bool ReadTarget(std::string_view text, ErrorReply& reply) {
  const std::optional<std::uint16_t> slot = ReadNumber<std::uint16_t>(TakeWord(text));
  const std::string_view where = TakeWord(text);
  const std::size_t colon = where.rfind(':');
  if (!slot || *slot >= kSlots || colon == std::string_view::npos) return false;
  const std::optional<std::uint16_t> port = ReadNumber<std::uint16_t>(where.substr(colon + 1));
  if (!port) return false;
  reply.slot = *slot;
  reply.site.host = where.substr(0, colon);
  reply.site.port = reply.site.host == "?" ? std::uint16_t{0} : *port;
  return reply.site.host.size() <= 255;
}

}  // namespace

ErrorReply ReadErrorReply(std::string_view text) {
  std::string_view rest = WithoutScript(text);
  const std::string_view word = TakeWord(rest);
  const auto* const row = std::ranges::find(kRows, word, &Row::word);
  if (row == kRows.end()) {
    // Redis 6.2 has no word of its own for what a script's user may not run.
    const bool forbidden = text.contains("executing the script can't run");
    return {.fault = forbidden ? StoreFault::kCredentials : StoreFault::kOther};
  }
  ErrorReply reply{.remedy = row->remedy, .fault = row->fault};
  const bool points = row->remedy == Remedy::kGoThere || row->remedy == Remedy::kAskThere;
  if (points && !ReadTarget(rest, reply)) return {.fault = StoreFault::kProtocol};
  return reply;
}

std::string_view Readable(std::string_view text) noexcept {
  constexpr std::size_t kLongest = 160;
  text = text.substr(0, std::min(text.find(" script: "), text.find_first_of("\r\n")));
  return text.substr(0, kLongest);
}

}  // namespace weir::redis
