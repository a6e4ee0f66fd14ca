#include "frontend/resp/check_words.h"

#include <array>
#include <charconv>
#include <string>

#include <weir/limit.h>

#include "frontend/decision_fields.h"
#include "limit/limit_words.h"
#include "policy/attribute.h"

namespace weir::resp {
namespace {

constexpr std::array<std::string_view, 4> kPrefixes = {"header.", "cookie.", "query.",
                                                       "descriptor."};
constexpr std::size_t kHeaders = 0;

std::unexpected<Error> Invalid(std::string message) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
}

Result<std::int64_t> ReadOption(std::string_view name, std::string_view text, std::int64_t least,
                                std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= least && value <= most) return value;
  return Invalid(std::string(name) + ": " + Quoted(text) + " is not allowed; write " +
                 std::to_string(least) + " to " + std::to_string(most));
}

constexpr std::int64_t Milliseconds(Duration length) noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(length).count();
}

// Reads the names and values of one command.
class CheckReader {
 public:
  CheckReader(const CheckOptions& options, NamedValues& values, CheckWords& check) noexcept
      : options_(options), values_(values), check_(check) {
    for (std::size_t i = 0; i < kPrefixes.size(); ++i) begin_[i] = values[i].size();
  }

  Result<void> Read(std::span<const std::string_view> words) {
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const std::string_view name = words[i];
      if (i + 1 == words.size()) return Invalid(Quoted(name) + ": its value is missing");
      const std::string_view value = words[i + 1];
      if (std::string_view Request::* const member = MemberOf(name)) [[likely]] {
        if ((check_.request.*member).data() != nullptr) return Doubled(name);
        check_.request.*member = value;
        continue;
      }
      const Result<void> read =
          name.starts_with('@') ? TakeOption(name, value) : TakeNamed(name, value);
      if (!read) return read;
    }
    check_.request.headers = Taken(0);
    check_.request.cookies = Taken(1);
    check_.request.query = Taken(2);
    check_.request.descriptors = Taken(3);
    return {};
  }

 private:
  // Null if it is none of those without a name of their own. By length first: that leaves three
  // comparisons at most.
  static std::string_view Request::* MemberOf(std::string_view name) noexcept {
    switch (name.size()) {
      case 2:
        return name == "ip" ? &Request::ip : nullptr;
      case 3:
        return name == "org" ? &Request::org : nullptr;
      case 4:
        if (name == "user") return &Request::user;
        if (name == "path") return &Request::path;
        if (name == "host") return &Request::host;
        return name == "tier" ? &Request::tier : nullptr;
      case 6:
        if (name == "method") return &Request::method;
        return name == "domain" ? &Request::domain : nullptr;
      case 7:
        return name == "api_key" ? &Request::api_key : nullptr;
      default:
        return nullptr;
    }
  }

  static std::unexpected<Error> Doubled(std::string_view name) {
    return Invalid(Quoted(name) + ": given twice; write it once");
  }

  Result<void> TakeOption(std::string_view name, std::string_view value) {
    if (name == "@cost" && options_.cost) {
      return Take(kCost, name, ReadCost(value), check_.cost);
    }
    if (name == "@wait_ms" && options_.wait) {
      return TakeLength(kWait, name, value, 0, kMaxWait, check_.wait);
    }
    if (name == "@ttl_ms" && options_.ttl) {
      return TakeLength(kTtl, name, value, 1, kMostReservationTtl, check_.ttl);
    }
    std::string allowed;
    if (options_.cost) allowed += " @cost";
    if (options_.wait) allowed += " @wait_ms";
    if (options_.ttl) allowed += " @ttl_ms";
    return Invalid(Quoted(name) + ": no such option; " +
                   (allowed.empty() ? "there are none here" : "there is" + allowed));
  }

  enum Option : unsigned { kCost = 1, kWait = 2, kTtl = 4 };

  Result<void> Take(Option option, std::string_view name, const Result<std::int64_t>& value,
                    std::int64_t& into) {
    if ((seen_ & option) != 0) return Doubled(name);
    if (!value) return std::unexpected(value.error());
    seen_ |= option;
    into = *value;
    return {};
  }

  Result<void> TakeLength(Option option, std::string_view name, std::string_view text,
                          std::int64_t least, Duration most, Duration& into) {
    std::int64_t number = 0;
    const Result<void> taken =
        Take(option, name, ReadOption(name, text, least, Milliseconds(most)), number);
    if (taken) into = std::chrono::milliseconds(number);
    return taken;
  }

  // header.x-plan and the like.
  Result<void> TakeNamed(std::string_view name, std::string_view value) {
    for (std::size_t kind = 0; kind < kPrefixes.size(); ++kind) {
      if (!name.starts_with(kPrefixes[kind])) continue;
      const std::string_view own = name.substr(kPrefixes[kind].size());
      if (own.empty()) return Invalid(Quoted(name) + ": a name is missing behind the dot");
      for (const NamedValue& before : Taken(kind)) {
        const bool same =
            kind == kHeaders ? EqualIgnoringCase(before.name, own) : before.name == own;
        if (same) return Doubled(name);
      }
      if (Taken(kind).size() == NamedValues::kMostOfAKind) {
        return Invalid(std::string(kPrefixes[kind]) + "NAME: more than " +
                       std::to_string(NamedValues::kMostOfAKind) + " are not allowed");
      }
      values_[kind].emplace_back(own, value);
      return {};
    }
    return Invalid(Quoted(name) +
                   ": no such attribute; there are ip user api_key org tier method path host "
                   "domain header.NAME cookie.NAME query.NAME descriptor.NAME");
  }

  // Of this command.
  std::span<const NamedValue> Taken(std::size_t kind) noexcept {
    return std::span<const NamedValue>(values_[kind].span()).subspan(begin_[kind]);
  }

  const CheckOptions& options_;
  NamedValues& values_;
  CheckWords& check_;
  std::array<std::size_t, kPrefixes.size()> begin_{};
  unsigned seen_ = 0;
};

}  // namespace

Result<std::int64_t> ReadCost(std::string_view text) {
  return ReadOption("@cost", text, 0, kMaxCount);
}

Result<void> ReadCheckWords(std::span<const std::string_view> words, const CheckOptions& options,
                            NamedValues& values, CheckWords& check) {
  // The word itself is the list of the one rule.
  if (words.front() != "*") check.request.rules = words.first(1);
  return CheckReader(options, values, check).Read(words.subspan(1));
}

}  // namespace weir::resp
