// What a decision of the engine costs, one by one and in batches, by how many rules a request meets
// and how many keys there are. The keys come in an order that no cache can guess.
#include <weir/engine.h>

#include <array>
#include <cstdint>
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
  - { name: per-user, key: user, limit: 1/day }
  - { name: per-route, match: { path: "/api/{area}/**" }, key: [user, path.area],
      limit: 1000000/s burst 1000000000 }
)";

class Subject {
 public:
  Subject(std::string_view yaml, std::int64_t keys)
      : engine(*Engine::Make(*Policy::Parse(yaml).policy)) {
    constexpr std::size_t kRequests = std::size_t{1} << 18;
    texts_.resize(kRequests);
    requests.resize(kRequests);
    for (std::size_t i = 0; i < kRequests; ++i) {
      const auto number = Mix(i + 1) % static_cast<std::uint64_t>(keys);
      Texts& text = texts_[i];
      text.user = "user-" + std::to_string(10'000'000 + number);
      text.ip = std::to_string(100 + number % 100) + "." + std::to_string(number / 100 % 250) +
                "." + std::to_string(number / 25'000 % 250) + ".7";
      text.path = "/api/area" + std::to_string(number % 10) + "/items/" + std::to_string(number);
      requests[i] = {.ip = text.ip, .user = text.user, .method = "GET", .path = text.path};
    }
    for (const Request& request : requests) {
      if (engine.Check(request, {.cost = 1'000'000, .now = now}).rules == 0) std::abort();
    }
  }

  const Now now = SystemClock::Shared().Read();
  Engine engine;
  std::vector<Request> requests;

 private:
  struct Texts {
    std::string user, ip, path;
  };
  std::vector<Texts> texts_;
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
  std::size_t at = 0;
  for ([[maybe_unused]] auto _ : state) {
    Answer answer = subject.engine.Check(subject.requests[at++ % subject.requests.size()],
                                         {.now = subject.now});
    benchmark::DoNotOptimize(answer);
  }
  state.SetItemsProcessed(state.iterations());
}

void Batch(benchmark::State& state, std::string_view yaml) {
  constexpr std::size_t kSize = 32;
  Subject& subject = SubjectOf(yaml, state.range(0));
  std::array<BatchRequest, kSize> batch;
  std::size_t at = 0;
  for ([[maybe_unused]] auto _ : state) {
    for (BatchRequest& item : batch) {
      item.request = subject.requests[at++ % subject.requests.size()];
    }
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
  std::size_t at = 0;
  for ([[maybe_unused]] auto _ : state) {
    for (LimitRequest& item : batch) {
      item.key = subject.requests[at++ % subject.requests.size()].user;
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
BENCHMARK_CAPTURE(Batch, one_of_three_denies, kDenying)->Arg(kSome);
BENCHMARK(Limits)->Arg(kFew)->Arg(kSome)->Arg(kMany);

}  // namespace
}  // namespace weir
