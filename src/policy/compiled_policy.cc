#include "policy/compiled_policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "policy/blanks.h"

namespace weir {
namespace {

constexpr std::string_view kUserAgent = "user-agent";

// 203.0.113.9, or 2001:db8::/56 of a longer address.
std::string_view AddressText(const Facts& facts, const KeyPlan::Source& source,
                             std::array<char, IpAddress::kTextSize>& buffer) noexcept {
  const IpAddress& address = *facts.ip();
  const int prefix = address.is_v4() ? source.ipv4_prefix : source.ipv6_prefix;
  // The shortest text of an IPv4 address is the only one that is read as IPv4.
  const std::string_view given = facts.request().ip;
  constexpr std::size_t kLongestV4 = 15;
  if (address.is_v4() && prefix == address.bits() && given.size() <= kLongestV4 &&
      given.find(':') == std::string_view::npos) {
    return given;
  }
  return address.Masked(prefix).ToText(buffer);
}

// Writes one attribute, or says that the request does not have it.
class PartWriter {
 public:
  PartWriter(const Facts& facts, const CompiledMatch& match, const KeyedHash& hash,
             SubjectWriter& writer) noexcept
      : facts_(facts), match_(match), hash_(hash), writer_(writer) {}

  bool Write(const KeyPlan::Source& source) noexcept {
    std::array<char, IpAddress::kTextSize> buffer;
    switch (source.attribute.kind) {
      case AttributeKind::kIp:
        if (!facts_.ip()) return false;
        return WriteValue(source, AddressText(facts_, source, buffer));
      case AttributeKind::kFingerprint:
        return WriteFingerprint(source, buffer);
      case AttributeKind::kPathSegment:
        return WriteValue(source, match_.PathSegment(facts_, source.attribute.name));
      default:
        return WriteValue(source, facts_.Get(source.attribute));
    }
  }

 private:
  bool WriteValue(const KeyPlan::Source& source, std::string_view value) noexcept {
    if (value.empty()) return false;
    if (source.hash) {
      Hex128Digits hex;
      hash_.Hex128(value, hex);
      writer_.AddHashedEncodedName(source.encoded_name, {hex.data(), hex.size()});
    } else {
      writer_.AddEncodedName(source.encoded_name, value);
    }
    return true;
  }

  // A visitor without an address is nobody; one without a user agent is somebody.
  bool WriteFingerprint(const KeyPlan::Source& source,
                        std::array<char, IpAddress::kTextSize>& buffer) noexcept {
    if (!facts_.ip()) return false;
    const Attribute user_agent{AttributeKind::kHeader, std::string(kUserAgent)};
    const std::array<std::string_view, 2> parts = {AddressText(facts_, source, buffer),
                                                   facts_.Get(user_agent)};
    Hex128Digits hex;
    hash_.Hex128OfAll(parts, hex);
    writer_.AddHashedEncodedName(source.encoded_name, {hex.data(), hex.size()});
    return true;
  }

  const Facts& facts_;
  const CompiledMatch& match_;
  const KeyedHash& hash_;
  SubjectWriter& writer_;
};

// A number too large to be held is the largest.
std::optional<std::int64_t> WholeNumber(std::string_view text) noexcept {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || read_to != end) return std::nullopt;
  if (error == std::errc()) return value;
  return text.front() == '-' ? std::nullopt : std::optional(kMaxCount);
}

}  // namespace

bool KeyPlan::Write(const Facts& facts, const CompiledMatch& match, const KeyedHash& hash,
                    SubjectWriter& writer) const noexcept {
  PartWriter part_writer(facts, match, hash, writer);
  bool complete = true;
  for (const std::vector<Source>& alternatives : parts_) {
    const auto written = [&](const Source& source) { return part_writer.Write(source); };
    if (std::ranges::any_of(alternatives, written)) continue;
    writer.AddEncodedName(alternatives.front().encoded_name, "");
    complete = false;
  }
  return complete;
}

bool KeyPlan::DependsOnMatch() const noexcept {
  return std::ranges::any_of(parts_, [](const std::vector<Source>& alternatives) {
    return std::ranges::any_of(alternatives, [](const Source& source) {
      return source.attribute.kind == AttributeKind::kPathSegment;
    });
  });
}

std::int64_t CompiledRule::OwnCostOf(const Facts& facts) const noexcept {
  if (cost->attribute.empty()) return cost->fallback;
  if (!cost->from_anyone && !facts.request().trusted) return cost->fallback;
  std::optional<std::int64_t> dearest;
  facts.ForEachValue(cost_attribute, [&](std::string_view text) {
    const std::optional<std::int64_t> value = WholeNumber(WithoutBlanks(text));
    if (value)
      dearest = std::max(dearest.value_or(cost->min), std::clamp(*value, cost->min, cost->max));
  });
  return dearest.value_or(cost->fallback);
}

bool CompiledRule::IsInShare(std::string_view subject) const noexcept {
  // The upper 53 bits, which a double holds exactly.
  const auto point = static_cast<double>((*share_hash)(subject) >> 11);
  return point < share * static_cast<double>(std::uint64_t{1} << 53);
}

CompiledPolicy::Tier CompiledPolicy::TierOf(std::string_view name) const noexcept {
  if (name.empty()) return {.number = default_tier, .known = true};
  const auto found = std::ranges::lower_bound(tiers, name);
  if (found == tiers.end() || *found != name)
    return {.number = default_tier, .known = tiers.empty()};
  return {.number = static_cast<std::uint32_t>(found - tiers.begin()), .known = true};
}

Request CompiledPolicy::WithTierThatCounts(const Request& request) const noexcept {
  Request changed = request;
  const bool has_one = !request.tier.empty() && TierOf(request.tier).known;
  if (!has_one && !default_tier_name.empty()) changed.tier = default_tier_name;
  return changed;
}

}  // namespace weir
