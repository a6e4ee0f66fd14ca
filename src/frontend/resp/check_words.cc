#include "frontend/resp/check_words.h"

#include <array>
#include <charconv>
#include <string>

#include <weir/limit.h>

#include "frontend/decision_fields.h"
#include "frontend/invalid_argument.h"
#include "limit/limit_words.h"
#include "policy/address.h"
#include "policy/attribute.h"

namespace weir::resp {
namespace {

// Attributes that have names of their own.
struct Named {
  std::string_view prefix;
  std::span<const NamedValue> Request::* member;
};
constexpr std::array<Named, 4> kNamed = {{{"header.", &Request::headers},
                                          {"cookie.", &Request::cookies},
                                          {"query.", &Request::query},
                                          {"descriptor.", &Request::descriptors}}};
constexpr std::size_t kHeaders = 0;

std::unexpected<Error> Invalid(std::string message) {
  return std::unexpected(InvalidArgument(std::move(message)));
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
  CheckReader(const CheckOptions& options, NamedValues& values, Request& request) noexcept
      : options_(options), values_(values), request_(request) {}

  Result<CheckTerms> Read(std::span<const std::string_view> words) {
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const std::string_view name = words[i];
      if (i + 1 == words.size()) return Invalid(Quoted(name) + ": its value is missing");
      const std::string_view value = words[i + 1];
      if (std::string_view Request::* const member = MemberOf(name)) [[likely]] {
        if ((request_.*member).data() != nullptr) return Doubled(name);
        if (member == &Request::ip && !IsAddress(value)) {
          return Invalid("ip: write an address: 203.0.113.9 or 2001:db8::1");
        }
        request_.*member = value;
        continue;
      }
      const Result<void> read =
          name.starts_with('@') ? TakeOption(name, value) : TakeNamed(name, value);
      if (!read) return std::unexpected(read.error());
    }
    return terms_;
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

  // Anything else would be counted under some key of its own, or under none. Empty is absent.
  static bool IsAddress(std::string_view text) noexcept {
    return text.empty() || IpAddress::Parse(text).has_value();
  }

  static std::unexpected<Error> Doubled(std::string_view name) {
    return Invalid(Quoted(name) + ": given twice; write it once");
  }

  Result<void> TakeOption(std::string_view name, std::string_view value) {
    if (name == "@cost" && options_.cost) {
      return Take(kCost, name, ReadCost(value), terms_.cost);
    }
    if (name == "@wait_ms" && (options_.wait || value == "0")) {
      return TakeLength(kWait, name, value, 0, kMaxWait, terms_.wait);
    }
    if (name == "@wait_ms") return Invalid("@wait_ms: only WEIR.CHECK waits; write 0");
    if (name == "@ttl_ms" && options_.ttl) {
      return TakeLength(kTtl, name, value, 1, kMostReservationTtl, terms_.ttl);
    }
    if (name == "@http" && options_.http) return TakeHttp(name, value);
    std::string allowed;
    if (options_.cost) allowed += " @cost";
    if (options_.wait) allowed += " @wait_ms";
    if (options_.ttl) allowed += " @ttl_ms";
    if (options_.http) allowed += " @http";
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

  Result<void> TakeHttp(std::string_view name, std::string_view value) {
    if (terms_.http != HttpForm::kNone) return Doubled(name);
    const Result<HttpForm> form = ReadHttpForm(value);
    if (!form) return std::unexpected(form.error());
    terms_.http = *form;
    return {};
  }

  // header.x-plan and the like.
  Result<void> TakeNamed(std::string_view name, std::string_view value) {
    for (std::size_t kind = 0; kind < kNamed.size(); ++kind) {
      const auto& [prefix, member] = kNamed[kind];
      if (!name.starts_with(prefix)) continue;
      const std::string_view own = name.substr(prefix.size());
      if (own.empty()) return Invalid(Quoted(name) + ": a name is missing behind the dot");
      std::span<const NamedValue>& taken = request_.*member;
      for (const NamedValue& before : taken) {
        const bool same =
            kind == kHeaders ? EqualIgnoringCase(before.name, own) : before.name == own;
        if (same) return Doubled(name);
      }
      if (taken.size() == NamedValues::kMostOfAKind) {
        return Invalid(std::string(prefix) + "NAME: more than " +
                       std::to_string(NamedValues::kMostOfAKind) + " are not allowed");
      }
      // Those of one command lie behind each other.
      const NamedValue& added = values_[kind].emplace_back(own, value);
      taken = {&added - taken.size(), taken.size() + 1};
      return {};
    }
    return Invalid(Quoted(name) +
                   ": no such attribute; there are ip user api_key org tier method path host "
                   "domain header.NAME cookie.NAME query.NAME descriptor.NAME");
  }

  const CheckOptions& options_;
  NamedValues& values_;
  Request& request_;
  CheckTerms terms_{};
  unsigned seen_ = 0;
};

}  // namespace

Result<std::int64_t> ReadCost(std::string_view text) {
  return ReadOption("@cost", text, 0, kMaxCount);
}

Result<HttpForm> ReadHttpForm(std::string_view text) {
  if (text == "json") return HttpForm::kJson;
  if (text == "problem") return HttpForm::kProblem;
  return Invalid("@http: " + Quoted(text) + " is not allowed; write json or problem");
}

Result<CheckTerms> ReadCheckWords(std::span<const std::string_view> words,
                                  const CheckOptions& options, NamedValues& values,
                                  Request& request) {
  // The word itself is the list of the one rule.
  if (words.front() != "*") request.rules = words.first(1);
  return CheckReader(options, values, request).Read(words.subspan(1));
}

}  // namespace weir::resp
