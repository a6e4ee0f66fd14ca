#include "policy/key_plan.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/mix.h"
#include "policy/text_hash.h"

namespace weir {
namespace {

constexpr std::string_view kUserAgent = "user-agent";

// 203.0.113.9, or 2001:db8::/56 of a longer address.
std::string_view AddressText(const Facts& facts, const KeyPlan::Source& source,
                             std::array<char, IpAddress::kTextSize>& buffer) noexcept {
  const IpAddress& address = *facts.ip();
  const int prefix = address.is_v4() ? source.ipv4_prefix : source.ipv6_prefix;
  // The shortest text of an IPv4 address is the only one that is read as IPv4. Of the IPv6 address
  // that stands for one, ::ffff:203.0.113.9, there are others.
  const std::string_view given = facts.request().ip;
  const auto is_v4_text = [&] { return given[1] == '.' || given[2] == '.' || given[3] == '.'; };
  if (address.is_v4() && prefix == address.bits() && is_v4_text()) return given;
  return address.Masked(prefix).ToText(buffer);
}

}  // namespace

// The key as text.
class KeyPlan::TextSink {
 public:
  TextSink(const KeyedHash& hash, SubjectWriter& writer) noexcept : hash_(hash), writer_(writer) {}

  void Add(const Source& source, std::string_view value) noexcept {
    if (!source.hash) return writer_.AddEncodedName(source.encoded_name, value);
    Hex128Digits hex;
    hash_.Hex128(value, hex);
    writer_.AddHashedEncodedName(source.encoded_name, {hex.data(), hex.size()});
  }
  void AddTogether(const Source& source, const std::array<std::string_view, 2>& values) noexcept {
    Hex128Digits hex;
    hash_.Hex128OfAll(values, hex);
    writer_.AddHashedEncodedName(source.encoded_name, {hex.data(), hex.size()});
  }
  void AddAbsent(const Source& source) noexcept { writer_.AddEncodedName(source.encoded_name, ""); }

 private:
  const KeyedHash& hash_;
  SubjectWriter& writer_;
};

// The key as a number. What it is made of is mixed before the next part comes, so that parts cannot
// stand in for one another; values are hashed under the secret, so that nobody can choose them to.
class KeyPlan::HashSink {
 public:
  explicit HashSink(const KeyHasher& hasher) noexcept : hasher_(hasher) {}

  // What is hashed in the text is another value than the same without.
  void Add(const Source& source, std::string_view value) noexcept {
    const std::uint64_t word = hasher_(value);
    AddWord(source, source.hash ? Mix(word) : word);
  }
  void AddTogether(const Source& source, const std::array<std::string_view, 2>& values) noexcept {
    AddWord(source, Mix(hasher_(values[0])) ^ hasher_(values[1]));
  }
  // No value that is there is empty.
  void AddAbsent(const Source& source) noexcept { AddWord(source, hasher_("")); }

  std::uint64_t hash() const noexcept { return state_; }

 private:
  void AddWord(const Source& source, std::uint64_t word) noexcept {
    state_ = Mix((state_ ^ source.seed) + word);
  }

  const KeyHasher& hasher_;
  std::uint64_t state_ = 0;
};

// Hands over one attribute, or says that the request does not have it.
template <typename Sink>
class KeyPlan::PartReader {
 public:
  PartReader(const Facts& facts, const CompiledMatch& match, Sink& sink) noexcept
      : facts_(facts), match_(match), sink_(sink) {}

  bool Read(const Source& source) noexcept {
    std::array<char, IpAddress::kTextSize> buffer;
    switch (source.attribute.kind) {
      case AttributeKind::kIp:
        if (!facts_.ip()) return false;
        return Take(source, AddressText(facts_, source, buffer));
      case AttributeKind::kFingerprint:
        // A visitor without an address is nobody; one without a user agent is somebody.
        if (!facts_.ip()) return false;
        sink_.AddTogether(source, {AddressText(facts_, source, buffer), UserAgent()});
        return true;
      case AttributeKind::kPathSegment:
        return Take(source, match_.PathSegment(facts_, source.attribute.name));
      default:
        return Take(source, facts_.Get(source.attribute));
    }
  }

 private:
  bool Take(const Source& source, std::string_view value) noexcept {
    if (value.empty()) return false;
    sink_.Add(source, value);
    return true;
  }
  std::string_view UserAgent() const noexcept {
    return facts_.Get({AttributeKind::kHeader, std::string(kUserAgent)});
  }

  const Facts& facts_;
  const CompiledMatch& match_;
  Sink& sink_;
};

KeyPlan::KeyPlan(std::vector<std::vector<Source>> parts) : parts_(std::move(parts)) {
  for (std::vector<Source>& alternatives : parts_) {
    // Names come from the policy, so this needs no secret.
    for (Source& source : alternatives) source.seed = HashOf(source.encoded_name);
  }
}

template <typename Sink>
bool KeyPlan::Read(const Facts& facts, const CompiledMatch& match, Sink& sink) const noexcept {
  PartReader<Sink> reader(facts, match, sink);
  bool complete = true;
  for (const std::vector<Source>& alternatives : parts_) {
    const auto read = [&](const Source& source) { return reader.Read(source); };
    if (std::ranges::any_of(alternatives, read)) continue;
    sink.AddAbsent(alternatives.front());
    complete = false;
  }
  return complete;
}

bool KeyPlan::Write(const Facts& facts, const CompiledMatch& match, const KeyedHash& hash,
                    SubjectWriter& writer) const noexcept {
  TextSink sink(hash, writer);
  return Read(facts, match, sink);
}

KeyPlan::HashedKey KeyPlan::Hash(const Facts& facts, const CompiledMatch& match,
                                 const KeyHasher& hasher) const noexcept {
  HashSink sink(hasher);
  const bool complete = Read(facts, match, sink);
  return {.hash = sink.hash(), .complete = complete};
}

bool KeyPlan::DependsOnMatch() const noexcept {
  return std::ranges::any_of(parts_, [](const std::vector<Source>& alternatives) {
    return std::ranges::any_of(alternatives, [](const Source& source) {
      return source.attribute.kind == AttributeKind::kPathSegment;
    });
  });
}

}  // namespace weir
