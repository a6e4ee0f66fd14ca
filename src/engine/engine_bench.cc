// What a decision of the engine costs, one by one and in batches, by how many rules a request meets
// and how many keys there are. The keys come in an order that no cache can guess.
#include <weir/engine.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <weir/policy.h>

#include "base/mix.h"

namespace weir {
namespace {

// The usual three: by address, by user, and by user and route.
constexpr std::string_view kThreeRules = R"(
memory: { cap: 1GiB }
rules:
  - { name: per-ip, key: ip, limit: 1000000/s burst 1000000000 }
  - { name: per-user, key: user, limit: 1000000/s burst 1000000000 }
  - { name: per-route, match: { path: "/api/{area}/**" }, key: [user, path.area],
      limit: 1000000/s burst 1000000000 }
)";
constexpr std::string_view kOneRule = R"(
memory: { cap: 1GiB }
rules:
  - { name: per-user, key: user, limit: 1000000/s burst 1000000000 }
)";
constexpr std::string_view kDenying = R"(
memory: { cap: 1GiB }
rules:
  - { name: per-ip, key: ip, limit: 1000000/s burst 1000000000 }
  - { name: per-user, key: user, limit: 1000000/300day }
  - { name: per-route, match: { path: "/api/{area}/**" }, key: [user, path.area],
      limit: 1000000/s burst 1000000000 }
)";

// The texts of a request side by side, as they lie in what came in over a socket.
struct Texts {
  std::array<char, 32> user{}, ip{}, path{};

  explicit Texts(std::uint64_t number) {
    std::snprintf(user.data(), user.size(), "user-%08llu", static_cast<unsigned long long>(number));
    std::snprintf(ip.data(), ip.size(), "%d.%d.%d.7", static_cast<int>(100 + number % 100),
                  static_cast<int>(number / 100 % 250), static_cast<int>(number / 25'000 % 250));
    std::snprintf(path.data(), path.size(), "/api/area%d/items/%d", static_cast<int>(number % 10),
                  static_cast<int>(number % 10'000));
  }
  Request request() const {
    return {.ip = ip.data(), .user = user.data(), .method = "GET", .path = path.data()};
  }
};

// The same with a window among them.
constexpr std::string_view kWithWindow = R"(
memory: { cap: 1GiB }
rules:
  - { name: per-ip, key: ip, limit: 1000000000/min, algorithm: sliding_window }
  - { name: per-user, key: user, limit: 1000000/s burst 1000000000 }
  - { name: per-path, key: [user, path], limit: 1000000/s burst 1000000000 }
)";

class Subject {
 public:
  Subject(std::string_view yaml, std::int64_t keys)
      : engine(*Engine::Make(*Policy::Parse(yaml).policy)) {
    constexpr std::size_t kRequests = std::size_t{1} << 18;
    texts_.reserve(kRequests);
    for (std::size_t i = 0; i < kRequests; ++i) {
      texts_.emplace_back(Mix(i + 1) % static_cast<std::uint64_t>(keys));
    }
    for (std::size_t i = 0; i < kRequests; ++i) {
      if (engine.Check(Next(), {.cost = 1'000'000, .now = now}).rules == 0) std::abort();
    }
  }

  Request Next() { return texts_[at_++ % texts_.size()].request(); }

  const Now now = SystemClock::Shared().Read();
  Engine engine;

 private:
  std::vector<Texts> texts_;
  std::size_t at_ = 0;
};

Subject& SubjectOf(std::string_view yaml, std::int64_t keys) {
  static std::vector<std::pair<std::pair<std::string_view, std::int64_t>, std::unique_ptr<Subject>>>
      all;
  for (auto& [what, subject] : all) {
    if (what == std::pair(yaml, keys)) return *subject;
  }
  return *all.emplace_back(std::pair(yaml, keys), std::make_unique<Subject>(yaml, keys)).second;
}

void One(benchmark::State& state, std::string_view yaml) {
  Subject& subject = SubjectOf(yaml, state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    Answer answer = subject.engine.Check(subject.Next(), {.now = subject.now});
    benchmark::DoNotOptimize(answer);
  }
  state.SetItemsProcessed(state.iterations());
}

void Batch(benchmark::State& state, std::string_view yaml) {
  constexpr std::size_t kSize = 32;
  Subject& subject = SubjectOf(yaml, state.range(0));
  std::array<BatchRequest, kSize> batch;
  for ([[maybe_unused]] auto _ : state) {
    for (BatchRequest& item : batch) item.request = subject.Next();
    subject.engine.CheckBatch(batch, subject.now);
    benchmark::DoNotOptimize(batch.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kSize));
}

void Limits(benchmark::State& state) {
  constexpr std::size_t kSize = 32;
  Subject& subject = SubjectOf(kOneRule, state.range(0));
  const Limit limit = *Limit::Parse("1000000/s burst 1000000000");
  std::array<LimitRequest, kSize> batch;
  for ([[maybe_unused]] auto _ : state) {
    for (LimitRequest& item : batch) {
      item.key = subject.Next().user;
      item.limit = &limit;
    }
    subject.engine.CheckLimits(batch, subject.now);
    benchmark::DoNotOptimize(batch.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kSize));
}

constexpr std::int64_t kFew = 1'000;
constexpr std::int64_t kSome = 100'000;
constexpr std::int64_t kMany = 1'000'000;

BENCHMARK_CAPTURE(One, one_rule, kOneRule)->Arg(kFew)->Arg(kSome)->Arg(kMany);
BENCHMARK_CAPTURE(Batch, one_rule, kOneRule)->Arg(kFew)->Arg(kSome)->Arg(kMany);
BENCHMARK_CAPTURE(One, three_rules, kThreeRules)->Arg(kFew)->Arg(kSome)->Arg(kMany);
BENCHMARK_CAPTURE(Batch, three_rules, kThreeRules)->Arg(kFew)->Arg(kSome)->Arg(kMany);
BENCHMARK_CAPTURE(Batch, three_rules_with_window, kWithWindow)->Arg(kFew)->Arg(kSome);
BENCHMARK_CAPTURE(Batch, one_of_three_denies, kDenying)->Arg(kSome);
BENCHMARK(Limits)->Arg(kFew)->Arg(kSome)->Arg(kMany);

}  // namespace
}  // namespace weir
