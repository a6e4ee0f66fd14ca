// A snapshot of an engine, version 1. Numbers are little-endian, texts have their length before
// them, in 32 bits:
//
//   | "WEIRSNAP" | version 4 | kind of hash 1 | its secret 192 | written at, in ns since 1970 8 |
//   | rules 4 | of each:
//       | name, a text | limits 4 | of each: limit |
//       | tiers 4 | of each: name, a text | number of the limit 4 |
//       | overrides 4 | of each: attributes 1 | of each: name, value, texts | number of the limit 4
//       |
//   | rules that ever counted 4 | of each: name, a text | limit |
//   | the store, as it writes itself |
//   | XXH3-64 of all before 8 |
//
// The secret is why nobody else may read such a file: who knows it can pick keys that collide.
#include "engine/snapshot_head.h"

#include <algorithm>
#include <array>

#include "policy/compiled_policy.h"

namespace weir {
namespace {

constexpr std::string_view kMagic = "WEIRSNAP";
constexpr std::uint32_t kVersion = 1;
// As long as a policy file may be, and nothing in it is longer.
constexpr std::size_t kMostTextBytes = std::size_t{16} << 20;

template <typename Items>
void PutCount(const Items& items, SnapshotWriter& writer) {
  writer.Put(static_cast<std::uint32_t>(items.size()));
}

void PutRule(const RuleLimits& rule, SnapshotWriter& writer, LimitWriter& limits) {
  PutCount(rule.limits, writer);
  for (const Limit& limit : rule.limits) limits.Put(limit);
  PutCount(rule.tiers, writer);
  for (const auto& [tier, number] : rule.tiers) {
    writer.PutText(tier);
    writer.Put(number);
  }
  PutCount(rule.overrides, writer);
  for (const auto& [key, number] : rule.overrides) {
    writer.Put(static_cast<std::uint8_t>(key.size()));
    for (const auto& [name, value] : key) {
      writer.PutText(name);
      writer.PutText(value);
    }
    writer.Put(number);
  }
}

std::uint32_t GetLimitNumber(const RuleLimits& rule, SnapshotReader& reader) {
  const auto most = static_cast<std::uint32_t>(rule.limits.size() - 1);
  return reader.GetWithin<std::uint32_t>(0, most, "the number of a limit");
}

RuleLimits GetRule(SnapshotReader& reader, LimitReader& limits) {
  RuleLimits rule;
  const auto count = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && !reader.failed(); ++i) rule.limits.push_back(limits.Get());
  if (rule.limits.empty()) reader.Refuse("a rule without a limit");
  const auto tiers = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < tiers && !reader.failed(); ++i) {
    std::string tier = reader.GetText(kMostTextBytes);
    rule.tiers.emplace(std::move(tier), GetLimitNumber(rule, reader));
  }
  const auto overrides = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < overrides && !reader.failed(); ++i) {
    RuleLimits::Key key(reader.Get<std::uint8_t>());
    for (auto& [name, value] : key) {
      name = reader.GetText(kMostTextBytes);
      value = reader.GetText(kMostTextBytes);
    }
    rule.overrides.emplace(std::move(key), GetLimitNumber(rule, reader));
  }
  return rule;
}

}  // namespace

void PutStart(const SnapshotStart& start, SnapshotWriter& writer) {
  writer.PutBytes(std::as_bytes(std::span(kMagic)));
  writer.Put(kVersion);
  writer.Put(static_cast<std::uint8_t>(start.hasher.kind()));
  writer.PutBytes(std::as_bytes(start.hasher.secret()));
  writer.Put(start.written_at.time_since_epoch().count());
}

Result<SnapshotStart> GetStart(SnapshotReader& reader) {
  const auto refuse = [](std::string message) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
  };
  std::array<char, kMagic.size()> magic{};
  reader.GetBytes(std::as_writable_bytes(std::span(magic)));
  if (reader.failed()) return std::unexpected(reader.Finish().error());
  if (!std::ranges::equal(magic, kMagic)) return refuse("it is no snapshot");
  const auto version = reader.Get<std::uint32_t>();
  if (version != kVersion && !reader.failed()) {
    return refuse("it is of version " + std::to_string(version) + "; this program reads version " +
                  std::to_string(kVersion));
  }
  const auto kind = reader.GetWithin<std::uint8_t>(0, static_cast<std::uint8_t>(HashKind::kSipHash),
                                                   "the kind of hash");
  std::array<unsigned char, KeyHasher::kSecretBytes> secret{};
  reader.GetBytes(std::as_writable_bytes(std::span(secret)));
  constexpr std::int64_t kFarthestWall = std::int64_t{1} << 62;
  const auto wall = reader.GetWithin(-kFarthestWall, kFarthestWall, "the time");
  return SnapshotStart{.hasher = KeyHasher(static_cast<HashKind>(kind), secret),
                       .written_at = WallTime(Duration(wall))};
}

void PutRules(const PolicyVersion& version, const LastLimits& last_limits, SnapshotWriter& writer,
              LimitWriter& limits) {
  PutCount(version.rules, writer);
  for (std::size_t i = 0; i < version.rules.size(); ++i) {
    writer.PutText(version.rules[i].name);
    PutRule(LimitsOf({version.compiled(), version.compiled().rules[i]}, version.rules[i].limits),
            writer, limits);
  }
  PutCount(last_limits, writer);
  for (const auto& [rule, limit] : last_limits) {
    writer.PutText(rule);
    limits.Put(limit);
  }
}

void GetRules(SnapshotReader& reader, LimitReader& limits, SnapshotHead& head) {
  const auto rules = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < rules && !reader.failed(); ++i) {
    std::string name = reader.GetText(kMostTextBytes);
    head.rules.emplace(std::move(name), GetRule(reader, limits));
  }
  const auto last = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < last && !reader.failed(); ++i) {
    std::string name = reader.GetText(kMostTextBytes);
    head.last_limits.emplace(std::move(name), limits.Get());
  }
}

}  // namespace weir
