#include "new_keys.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "governor_peer.h"
#include "harness/keys.h"
#include "stores.h"

namespace weir::bench {
namespace {

constexpr std::size_t kBatch = 32;

struct Shape {
  bool batched;
  int threads;

  std::string Name() const {
    return std::string(batched ? "/batch32" : "/single") +
           (threads == 1 ? "/1thread" : "/2threads");
  }
};

template <typename Store>
void CheckSome(Store& store, Cursor& cursor, Now now, bool batched, std::size_t& allowed) {
  if (!batched) {
    Decision decision = store.Check(cursor.Next(), now);
    benchmark::DoNotOptimize(decision);
    allowed += decision.allowed ? 1U : 0U;
    return;
  }
  std::array<BatchItem, kBatch> items;
  std::array<Decision, kBatch> decisions;
  for (BatchItem& item : items) item.key = cursor.Next();
  Require(store.CheckBatch(items, decisions, now).has_value(), "a batch succeeds");
  for (const Decision& decision : decisions) allowed += decision.allowed ? 1U : 0U;
}

// Registers a benchmark that asks once for each key of the sequence. `make` makes an empty store,
// and `verify` looks at the full one.
template <typename Store>
void Register(const std::string& name, Shape shape, const KeySequence& sequence,
              std::function<std::unique_ptr<Store>()> make, std::function<void(Store&)> verify) {
  // One for all threads: the first makes it before the others begin, and ends it after them.
  auto store = std::make_shared<std::unique_ptr<Store>>();
  const std::size_t share = sequence.size() / static_cast<std::size_t>(shape.threads);
  const auto measure = [=, &sequence](benchmark::State& state) {
    if (state.thread_index() == 0) {
      // Otherwise a store would find the memory that the one before it has given back, already
      // in place; a program that is flooded for the first time does not.
      malloc_trim(0);
      *store = make();
    }
    const Now now = SystemClock::Shared().Read();
    Cursor cursor(sequence, share * static_cast<std::size_t>(state.thread_index()));
    std::size_t allowed = 0;
    for ([[maybe_unused]] auto _ : state) {
      CheckSome(**store, cursor, now, shape.batched, allowed);
    }
    Require(allowed == share, "every check of a new key is allowed");
    state.SetItemsProcessed(static_cast<std::int64_t>(share));
    if (state.thread_index() == 0) {
      verify(**store);
      store->reset();
    }
  };
  benchmark::RegisterBenchmark((name + shape.Name()).c_str(), measure)
      ->Iterations(static_cast<std::int64_t>(share / (shape.batched ? kBatch : 1)))
      ->Threads(shape.threads)
      ->UseRealTime();
}

void RegisterGovernor(const GovernorLibrary& library, const std::string& name,
                      const KeySequence& sequence, const GovernorLibrary::Queries& queries) {
  const auto measure = [&](benchmark::State& state) {
    malloc_trim(0);
    const GovernorLibrary::Limiter limiter(library, 1, /*reads_clock=*/false, GovernorKey::kString);
    std::size_t allowed = 0;
    std::size_t at = 0;
    for ([[maybe_unused]] auto _ : state) {
      allowed += limiter.Check(queries, at, kBatch);
      at += kBatch;
    }
    Require(allowed == sequence.size(), "every check of a new key is allowed");
    Require(limiter.entries() == sequence.size(), "governor holds as many as went in");
    state.SetItemsProcessed(static_cast<std::int64_t>(sequence.size()));
  };
  benchmark::RegisterBenchmark((name + Shape{.batched = false, .threads = 1}.Name()).c_str(),
                               measure)
      ->Iterations(static_cast<std::int64_t>(sequence.size() / kBatch))
      ->UseRealTime();
}

}  // namespace

void RunNewKeys(const NewKeysOptions& options, Results& results) {
  const auto keys = static_cast<std::size_t>(4e6 * options.scale) / (2 * kBatch) * (2 * kBatch);
  const auto sequence = KeySequence::EachOnce(0, keys);
  const Limit limit = ParseLimit(kTightLimit);
  const auto all_there = [keys](auto& store) {
    Require(EntriesOf(store) == keys, "the store holds as many keys as went in");
  };
  // Room for some third of the keys.
  const std::size_t small_cap = std::max(keys * 8, std::size_t{2} << 20);
  const auto some_gone = [keys](Limiter& limiter) {
    const LimiterStats stats = limiter.Stats();
    Require(stats.entries < keys && stats.evicted_live > 0, "the cap has been reached");
  };

  std::optional<GovernorLibrary> library;
  std::optional<GovernorLibrary::Queries> queries;
  for (const bool reserved : {false, true}) {
    const std::size_t expected = reserved ? keys : 0;
    const std::string what = std::string("/new/4M/") + (reserved ? "reserved" : "growing");
    for (const Shape shape : {Shape{false, 1}, Shape{false, 2}, Shape{true, 1}, Shape{true, 2}}) {
      Register<Limiter>(
          "weir" + what, shape, sequence,
          [=] { return std::make_unique<Limiter>(MakeWeir(limit, expected)); }, all_there);
      Register<BoostStore<ByFingerprint>>(
          "boost_fingerprint" + what, shape, sequence,
          [=] { return std::make_unique<BoostStore<ByFingerprint>>(limit, expected); }, all_there);
      if (shape.batched) continue;
      Register<BoostStore<ByString>>(
          "boost_string" + what, shape, sequence,
          [=] { return std::make_unique<BoostStore<ByString>>(limit, expected); }, all_there);
    }
  }
  Register<Limiter>(
      "weir/new/4M/capped", {.batched = false, .threads = 1}, sequence,
      [=] { return std::make_unique<Limiter>(MakeWeir(limit, 0, small_cap)); }, some_gone);
  if (!options.governor.empty()) {
    library.emplace(options.governor);
    queries.emplace(*library, sequence);
    RegisterGovernor(*library, "governor/new/4M/growing", sequence, *queries);
  }
  results.RunRounds(options.rounds);
  benchmark::ClearRegisteredBenchmarks();
}

}  // namespace weir::bench
