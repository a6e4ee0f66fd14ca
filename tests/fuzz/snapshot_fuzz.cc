// A snapshot that holds anything at all: it is refused with a word, or there is an engine that
// decides, and whose own snapshot is taken up.
//
// If the first byte is odd the rest is the whole of it. Otherwise it is what follows the time it
// was written at, and the checksum is made to fit, so that more than that is looked at.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <weir/clock.h>
#include <weir/engine.h>
#include <weir/policy.h>

#include "base/checksum.h"
#include "in_pieces.h"

namespace {

using weir::fuzz::Fail;
using Bytes = std::vector<std::byte>;

// A rule for every kind of state, so that whatever is loaded is looked at. The names are those in
// the corpus, the secret is zeros: keys there were hashed with it.
const weir::Policy& SomePolicy() {
  static const weir::Policy kPolicy = *weir::Policy::Parse(R"(
memory: { cap: 2MiB }
identity: { tier: { header: x-tier, default: free } }
tiers: { free: { r: 3/h }, pro: { r: 30/h } }
rules:
  - { name: token, key: user, limit: 3/h, overrides: { ann: 5/h } }
  - { name: tiered, key: user, limit: { tier: r }, algorithm: fixed_window }
  - { name: calendar, key: user, limit: 3/day, algorithm: fixed_window, align: calendar }
  - { name: sliding, key: user, limit: 3/h, algorithm: sliding_window }
  - { name: strict, key: user, limit: 3/h, algorithm: sliding_window, strict: true }
  - { name: fine, key: user, limit: 3/h, algorithm: sliding_window, strict: true, sub_windows: 50 }
  - { name: log, key: user, limit: 3/h, algorithm: sliding_log }
  - { name: places, key: user, limit: 3 concurrent lease 1h, algorithm: concurrency }
)")
                                           .policy;
  return kPolicy;
}

weir::ByteSource SourceOf(std::span<const std::byte> bytes) {
  return [bytes](std::span<std::byte> into) mutable -> weir::Result<std::size_t> {
    const std::size_t some = std::min<std::size_t>({into.size(), bytes.size(), 97});
    std::ranges::copy(bytes.first(some), into.begin());
    bytes = bytes.subspan(some);
    return some;
  };
}

template <typename Number>
void Append(Number number, Bytes& bytes) {
  std::array<std::byte, sizeof(number)> its;
  std::memcpy(its.data(), &number, sizeof(number));
  bytes.insert(bytes.end(), its.begin(), its.end());
}

Bytes Whole(std::span<const std::byte> rest, const weir::Clock& clock) {
  Bytes bytes;
  for (const char c : std::string("WEIRSNAP")) bytes.push_back(static_cast<std::byte>(c));
  Append(std::uint32_t{1}, bytes);
  bytes.resize(bytes.size() + 1 + 192);  // XXH3, and its secret.
  Append(clock.Read().wall.time_since_epoch().count(), bytes);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  weir::Checksum checksum;
  checksum.Add(bytes);
  Append(checksum.Value(), bytes);
  return bytes;
}

// Whatever was loaded, all verbs must be answered.
void Use(weir::Engine& engine, weir::ManualClock& clock) {
  for (const char* user : {"ann", "bob", ""}) {
    for (int i = 0; i < 2; ++i) {
      engine.Check({.user = user, .tier = "pro"});
      engine.Peek({.user = user}, {.cost = weir::kMaxCount});
      clock.Advance(std::chrono::minutes(13));
    }
    const weir::Answer reserved = engine.Reserve({.user = user}, {.cost = 2});
    std::ignore = engine.Commit(reserved.decision.reservation, 1);
    engine.Penalize({.user = user}, {.cost = weir::kMaxCount});
    engine.Refund({.user = user}, {.cost = 1});
    clock.Advance(std::chrono::hours(30));
    engine.Check({.user = user});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  weir::ManualClock clock;
  const std::span rest = std::as_bytes(std::span(data, size)).subspan(1);
  const Bytes bytes = data[0] % 2 == 1 ? Bytes(rest.begin(), rest.end()) : Whole(rest, clock);
  const weir::EngineOptions options{.clock = &clock, .max_reservations = 64};
  auto loaded = weir::Engine::Load(SomePolicy(), SourceOf(bytes), options);
  if (!loaded) {
    if (loaded.error().message.empty()) Fail("refused without a word");
    return 0;
  }
  Use(loaded->engine, clock);
  Bytes again;
  const auto saved = loaded->engine.Save([&](std::span<const std::byte> some) {
    again.insert(again.end(), some.begin(), some.end());
    return weir::Result<void>();
  });
  if (!saved) Fail("not saved");
  if (!weir::Engine::Load(SomePolicy(), SourceOf(again), options)) Fail("not taken up again");
  return 0;
}
