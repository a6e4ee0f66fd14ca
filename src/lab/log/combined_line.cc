// The combined and common formats of nginx and Apache, perhaps with the host in front:
//   192.0.2.1 - ann [10/Oct/2025:13:55:36 +0200] "GET /x HTTP/1.1" 200 512 "referer" "user agent"
// Whatever follows is not looked at.
#include <algorithm>
#include <cstring>

#include "lab/log/line_parser.h"
#include "lab/log/log_time.h"

namespace weir::lab {
namespace {

using Kind = LineResult::Kind;

enum Part : std::uint8_t {
  kVhost,
  kAddress,
  kIdent,
  kRemoteUser,
  kTimeLocal,
  kRequest,
  kMethodPart,
  kPathPart,
  kStatusPart,
  kBytes,
  kReferer,
  kAgent,
  kParts
};

struct PartName {
  std::string_view name;
  Part part;
};
constexpr PartName kPartNames[] = {{"remote_addr", kAddress}, {"ip", kAddress},
                                   {"ident", kIdent},         {"remote_user", kRemoteUser},
                                   {"user", kRemoteUser},     {"time_local", kTimeLocal},
                                   {"time", kTimeLocal},      {"request", kRequest},
                                   {"method", kMethodPart},   {"path", kPathPart},
                                   {"status", kStatusPart},   {"body_bytes_sent", kBytes},
                                   {"bytes", kBytes},         {"http_referer", kReferer},
                                   {"referer", kReferer},     {"http_user_agent", kAgent},
                                   {"user_agent", kAgent},    {"vhost", kVhost},
                                   {"host", kVhost}};

struct Override {
  Field field;
  Part part;
};
struct Plan {
  std::vector<Override> overrides{};
  std::vector<Part> wanted{};  // kParts: there is no such column.
  bool rest = true;            // Whether somebody wants what is behind the status.
};

// Behind the quote that ends what begins at `from`; npos if none does.
std::size_t EndOfQuoted(std::string_view line, std::size_t from) noexcept {
  for (std::size_t at = from;; ++at) {
    const void* const found =
        at < line.size() ? std::memchr(line.data() + at, '"', line.size() - at) : nullptr;
    if (found == nullptr) return std::string_view::npos;
    at = static_cast<std::size_t>(static_cast<const char*>(found) - line.data());
    std::size_t slashes = 0;
    while (slashes < at - from && line[at - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0) return at + 1;
  }
}

LineResult Unparsed(const char* why) { return {.kind = Kind::kUnparsed, .why = why}; }

class CombinedParser final : public LineParser {
 public:
  explicit CombinedParser(const Plan& plan) : plan_(plan) {}

  LineResult Parse(std::string_view line, LogRecord& record, Texts& texts) override {
    // Clients choose what they are called, and must not be able to hide behind a bracket in it.
    constexpr int kMostBrackets = 16;
    const char* why = "no address and time";
    std::size_t open = FindBracket(line, 0);
    for (int i = 0; i < kMostBrackets && open != std::string_view::npos; ++i) {
      Head head;
      const char* const its = TakeHead(line, open, record, head);
      if (its == nullptr) return TakeRequest(line, head, record, texts);
      if (i == 0) why = its;
      open = FindBracket(line, open + 1);
    }
    return SaysNothing(line) ? LineResult{.kind = Kind::kBlank} : Unparsed(why);
  }

 private:
  // Who and when; the request begins at `end`.
  struct Head {
    std::string_view ident{};
    std::string_view vhost{};
    std::size_t time_at = 0;
    std::size_t end = 0;
  };

  static std::size_t FindBracket(std::string_view line, std::size_t from) noexcept {
    const void* const found =
        from < line.size() ? std::memchr(line.data() + from, '[', line.size() - from) : nullptr;
    if (found == nullptr) return std::string_view::npos;
    return static_cast<std::size_t>(static_cast<const char*>(found) - line.data());
  }

  // Null if this bracket is the one around the time, else why not.
  const char* TakeHead(std::string_view line, std::size_t open, LogRecord& record, Head& head) {
    record = LogRecord();
    if (!TakeWho(line.substr(0, open), record, head.ident, head.vhost)) {
      return "no address and time";
    }
    head.time_at = open + 1;
    std::size_t at = 0;
    if (!TakeTime(line, open + 1, record.time, at)) return "the time cannot be read";
    if (at + 2 >= line.size() || line[at] != ' ' || line[at + 1] != '"') {
      return "no request behind the time";
    }
    head.end = at + 2;
    return nullptr;
  }

  LineResult TakeRequest(std::string_view line, const Head& head, LogRecord& record,
                         Texts& texts) const {
    const std::size_t request_from = head.end;
    std::size_t at = 0;
    const std::size_t request_end = EndOfQuoted(line, request_from);
    if (request_end == std::string_view::npos) return Unparsed("the request does not end");
    const std::string_view request =
        Plain(line.substr(request_from, request_end - 1 - request_from), texts);
    SplitRequestLine(request, record);
    if (!TakeStatus(line, request_end, record.status, at)) return Unparsed("no status");
    const std::size_t status_at = request_end + 1;
    const std::size_t bytes_at = std::min(at + 1, line.size());
    std::string_view referer;
    if (plan_.rest) TakeRest(line, at, record, referer, texts);
    if (!plan_.overrides.empty() || !plan_.wanted.empty()) {
      const std::array<std::string_view, kParts> parts = {
          head.vhost,
          record.ip,
          head.ident,
          record.user,
          line.substr(head.time_at, kLocalTimeBytes),
          request,
          record.method,
          record.path,
          line.substr(status_at, at - status_at),
          line.substr(bytes_at, std::min(line.find(' ', bytes_at), line.size()) - bytes_at),
          referer,
          record.user_agent};
      Special(parts, record, texts);
    }
    return {.kind = Kind::kRequest};
  }

  // "192.0.2.1 - ann ", or with the host in front.
  static bool TakeWho(std::string_view who, LogRecord& record, std::string_view& ident,
                      std::string_view& vhost) {
    if (who.empty() || who.back() != ' ') return false;
    who.remove_suffix(1);
    std::size_t first = who.find(' ');
    if (first == 0 || first == std::string_view::npos) return false;
    std::size_t second = who.find(' ', first + 1);
    if (second == std::string_view::npos) return false;
    // With a host in front the blank "-" of the identity is third.
    if (who.substr(first + 1, second - first - 1) != "-") {
      const std::size_t third = who.find(' ', second + 1);
      if (third != std::string_view::npos && who.substr(second + 1, third - second - 1) == "-") {
        vhost = who.substr(0, first);
        record.host = vhost;
        who.remove_prefix(first + 1);
        first = second - first - 1;
        second = who.find(' ', first + 1);
      }
    }
    std::string_view ip = who.substr(0, first);
    if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
    ident = who.substr(first + 1, second - first - 1);
    const std::string_view user = who.substr(second + 1);
    if (!IsAbsent(ip)) record.ip = ip;
    if (!IsAbsent(user)) record.user = user;
    return true;
  }

  // Sets `end` to behind the bracket.
  bool TakeTime(std::string_view line, std::size_t from, WallTime& time, std::size_t& end) {
    const char* const text = line.data() + from;
    if (from + kLocalTimeBytes < line.size() && text[kLocalTimeBytes] == ']') {
      end = from + kLocalTimeBytes + 1;
      // Many lines are of the same second.
      if (std::memcmp(text, last_text_.data(), kLocalTimeBytes) != 0) {
        const std::optional<WallTime> parsed = ParseTime({text, kLocalTimeBytes});
        if (!parsed) return false;
        last_time_ = *parsed;
        std::memcpy(last_text_.data(), text, kLocalTimeBytes);
      }
      time = last_time_;
      return true;
    }
    const std::size_t close = line.find(']', from);
    if (close == std::string_view::npos) return false;
    const std::optional<WallTime> parsed = ParseTime(line.substr(from, close - from));
    if (parsed) time = *parsed;
    end = close + 1;
    return parsed.has_value();
  }

  static bool TakeStatus(std::string_view line, std::size_t from, int& status, std::size_t& end) {
    if (from + 1 >= line.size() || line[from] != ' ') return false;
    if (line[from + 1] == '-') {
      end = from + 2;
      return end == line.size() || line[end] == ' ';
    }
    end = from + 1;
    for (; end < line.size() && line[end] >= '0' && line[end] <= '9' && end < from + 4; ++end) {
      status = status * 10 + (line[end] - '0');
    }
    return end == from + 4 && (end == line.size() || line[end] == ' ');
  }

  // The bytes, and in the combined format referer and user agent. What is not there is not said.
  static void TakeRest(std::string_view line, std::size_t at, LogRecord& record,
                       std::string_view& referer, Texts& texts) {
    const std::size_t bytes_end = line.find(' ', at + 1);
    if (bytes_end == std::string_view::npos || bytes_end + 1 >= line.size() ||
        line[bytes_end + 1] != '"') {
      return;
    }
    const std::size_t referer_end = EndOfQuoted(line, bytes_end + 2);
    if (referer_end == std::string_view::npos) return;
    referer = line.substr(bytes_end + 2, referer_end - 1 - (bytes_end + 2));
    if (referer_end + 1 >= line.size() || line[referer_end + 1] != '"') return;
    const std::size_t agent_end = EndOfQuoted(line, referer_end + 2);
    if (agent_end == std::string_view::npos) return;
    const std::string_view agent = line.substr(referer_end + 2, agent_end - 1 - (referer_end + 2));
    if (!IsAbsent(agent)) record.user_agent = Plain(agent, texts);
  }

  static std::string_view Plain(std::string_view text, Texts& texts) {
    if (std::memchr(text.data(), '\\', text.size()) == nullptr) return text;
    return Unescape(text, texts);
  }

  void Special(const std::array<std::string_view, kParts>& parts, LogRecord& record,
               Texts& texts) const {
    const std::span<std::string_view> wanted = texts.List(plan_.wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Part part = plan_.wanted[i];
      if (part != kParts && !IsAbsent(parts[part])) wanted[i] = parts[part];
    }
    record.wanted = wanted;
    for (const Override& change : plan_.overrides) {
      const std::string_view value = IsAbsent(parts[change.part]) ? "" : parts[change.part];
      switch (change.field) {
        case Field::kIp:
          record.ip = value;
          break;
        case Field::kUser:
          record.user = value;
          break;
        case Field::kApiKey:
          record.api_key = value;
          break;
        case Field::kOrg:
          record.org = value;
          break;
        case Field::kTier:
          record.tier = value;
          break;
        case Field::kHost:
          record.host = value;
          break;
        case Field::kUserAgent:
          record.user_agent = value;
          break;
        case Field::kMethod:
        case Field::kPath:
        case Field::kTime:
        case Field::kStatus:
        case Field::kCost:
        case Field::kRequestLine:
          break;  // There is but one column of this format that could say so.
      }
    }
  }

  const Plan& plan_;
  // One that means the other, so that a time is never taken for the last before there was one.
  std::string last_text_ = "01/Jan/1970:00:00:00 +0000";
  WallTime last_time_{};
};

class CombinedFormat final : public LineFormat {
 public:
  explicit CombinedFormat(Plan plan) : plan_(std::move(plan)) {}
  std::string_view name() const override { return "combined"; }
  std::unique_ptr<LineParser> MakeParser() const override {
    return std::make_unique<CombinedParser>(plan_);
  }

 private:
  const Plan plan_;
};

}  // namespace

Result<std::unique_ptr<LineFormat>> MakeCombinedFormat(const ColumnNames& names) {
  Plan plan;
  const auto part_of = [](std::string_view name) {
    const auto* const found = std::ranges::find(kPartNames, name, &PartName::name);
    return found == std::end(kPartNames) ? kParts : found->part;
  };
  for (const auto& [field, column] : names.named) {
    const Part part = part_of(column);
    if (part == kParts) {
      std::string all;
      for (const PartName& each : kPartNames) {
        if (!all.empty()) all += ", ";
        all += each.name;
      }
      std::string message = "--column ";
      message += field;
      message += "=" + column;
      message += ": the combined format has no such column; it has " + all;
      return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
    }
    if (const std::optional<Field> known = FieldNamed(field)) {
      plan.overrides.push_back({.field = *known, .part = part});
    }
  }
  for (const std::string& name : names.wanted) {
    const auto named =
        std::ranges::find(names.named, name, &std::pair<std::string, std::string>::first);
    plan.wanted.push_back(part_of(named != names.named.end() ? named->second : name));
  }
  plan.rest = names.user_agent || !plan.wanted.empty() || !plan.overrides.empty();
  return std::make_unique<CombinedFormat>(std::move(plan));
}

}  // namespace weir::lab
