#include "checks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "governor_peer.h"
#include "harness/keys.h"
#include "stores.h"

namespace weir::bench {
namespace {

constexpr std::size_t kBatch = 32;

// More keys would take governor longer to fill than everything else takes together.
constexpr std::uint64_t kMostForGovernor = 1'000'000;

// Requests of one kind on keys of one store.
struct Case {
  Outcome outcome;
  std::uint64_t keys;
  Spread spread;
  bool batched;
  int threads;
  bool clock;  // Whether the clock is read for every call.

  std::string Name() const {
    const auto count = keys >= 1'000'000 ? std::to_string(keys / 1'000'000) + "M"
                       : keys >= 1'000   ? std::to_string(keys / 1'000) + "k"
                                         : std::to_string(keys);
    std::string name = outcome == Outcome::kAllow ? "allow/" : "deny/";
    name += count + (keys == 1 ? "/hot" : spread == Spread::kUniform ? "/uniform" : "/zipf");
    name += batched ? "/batch32" : "/single";
    name += threads == 1 ? "/1thread" : "/" + std::to_string(threads) + "threads";
    if (clock) name += "/clock";
    return name;
  }
};

// How much a run does in each of its threads.
struct Amount {
  std::size_t checks;
  std::size_t warm_up;  // Checks before the time counts.
};

Amount AmountFor(const ChecksOptions& options) {
  const double checks = options.keys >= 10'000'000 ? 1e6 : options.keys >= 100'000 ? 1.5e6 : 4e6;
  const auto whole =
      std::max<std::size_t>(1, static_cast<std::size_t>(checks * options.scale) / kBatch) * kBatch;
  return {.checks = whole, .warm_up = std::clamp<std::size_t>(options.keys, whole / 16, whole / 2)};
}

// All that a run needs to know beyond its store.
struct Plan {
  Case what;
  const KeySequence& sequence;
  Amount amount;
  Now now;  // For checks that do not read the clock.

  std::size_t StartOf(const benchmark::State& state) const {
    return sequence.size() / static_cast<std::size_t>(what.threads) *
           static_cast<std::size_t>(state.thread_index());
  }
  void Finish(benchmark::State& state, std::size_t checks, std::size_t allowed) const {
    Require(allowed == (what.outcome == Outcome::kAllow ? checks : 0), "the outcome is the case's");
    state.SetItemsProcessed(static_cast<std::int64_t>(amount.checks));
  }
};

template <bool kClock, typename Store>
Decision CheckOne(Store& store, std::string_view key, Now now) {
  if constexpr (kClock) {
    return store.Check(key);
  } else {
    return store.Check(key, now);
  }
}

template <bool kClock, typename Store>
void MeasureSingles(benchmark::State& state, Store& store, const Plan& plan) {
  Cursor cursor(plan.sequence, plan.StartOf(state));
  std::size_t allowed = 0;
  const auto check = [&] {
    Decision decision = CheckOne<kClock>(store, cursor.Next(), plan.now);
    benchmark::DoNotOptimize(decision);
    allowed += decision.allowed ? 1U : 0U;
  };
  for (std::size_t i = 0; i < plan.amount.warm_up; ++i) check();
  for ([[maybe_unused]] auto _ : state) check();
  plan.Finish(state, plan.amount.warm_up + plan.amount.checks, allowed);
}

template <bool kClock, typename Store>
void MeasureBatches(benchmark::State& state, Store& store, const Plan& plan) {
  Cursor cursor(plan.sequence, plan.StartOf(state));
  std::array<BatchItem, kBatch> items;
  std::array<Decision, kBatch> decisions;
  std::size_t allowed = 0;
  const auto check = [&] {
    for (BatchItem& item : items) item.key = cursor.Next();
    Result<void> done;
    if constexpr (kClock) {
      done = store.CheckBatch(items, decisions);
    } else {
      done = store.CheckBatch(items, decisions, plan.now);
    }
    Require(done.has_value(), "a batch succeeds");
    benchmark::DoNotOptimize(decisions);
    for (const Decision& decision : decisions) allowed += decision.allowed ? 1U : 0U;
  };
  const std::size_t warm_up = plan.amount.warm_up / kBatch;
  for (std::size_t i = 0; i < warm_up; ++i) check();
  for ([[maybe_unused]] auto _ : state) check();
  plan.Finish(state, warm_up * kBatch + plan.amount.checks, allowed);
}

// One store of each kind, all with the same keys in them.
class Subjects {
 public:
  explicit Subjects(const ChecksOptions& options)
      : options_(options),
        limit_(ParseLimit(options.outcome == Outcome::kAllow ? kRoomyLimit : kTightLimit)),
        weir_(MakeWeir(limit_, options.keys)),
        fingerprints_(std::make_unique<BoostStore<ByFingerprint>>(limit_, options.keys)),
        strings_(std::make_unique<BoostStore<ByString>>(limit_, options.keys)) {
    Fill(weir_);
    Fill(*fingerprints_);
    Fill(*strings_);
    Require(weir_.Stats().evicted_live == 0, "Weir has not forgotten a key");
    if (!options.governor.empty() && options.keys <= kMostForGovernor) FillGovernor();
  }

  void Register(const Case& what, const KeySequence& sequence) {
    const Plan plan{.what = what,
                    .sequence = sequence,
                    .amount = AmountFor(options_),
                    .now = SystemClock::Shared().Read()};
    RegisterStore("weir", weir_, plan);
    RegisterStore("boost_fingerprint", *fingerprints_, plan);
    if (!what.batched) RegisterStore("boost_string", *strings_, plan);
    if (!what.batched) RegisterGovernors(plan);
  }

  // After the last run: nothing was lost on the way.
  void CheckThatAllIsThere() {
    Require(EntriesOf(weir_) == options_.keys, "Weir still holds the keys");
    Require(weir_.Stats().evicted_live == 0, "Weir has forgotten none");
  }

 private:
  struct Governor {
    std::string name;
    bool clock;
    GovernorLibrary::Limiter limiter;
  };

  template <typename Store>
  void Fill(Store& store) {
    const bool allow = options_.outcome == Outcome::kAllow;
    const std::int64_t cost = allow ? kRoomyFirstCost : kTightFirstCost;
    Require(CountAllowed(store, cost, 1) == options_.keys, "every key is new");
    const std::uint64_t stride = std::max<std::uint64_t>(1, options_.keys / 1'000'000);
    if (!allow) Require(CountAllowed(store, 1, stride) == 0, "every key is used up");
    Require(EntriesOf(store) == options_.keys, "the store holds as many keys as went in");
    std::array<char, kKeyBytes> text;
    for (std::uint64_t id = 0; id < options_.keys; id += stride) {
      WriteKey(id, text.data());
      const Decision decision = PeekAt(store, {text.data(), text.size()});
      Require(decision.remaining < decision.limit, "the store knows the key");
    }
  }

  // Asks once for every key, or for one of every `stride`.
  template <typename Store>
  std::size_t CountAllowed(Store& store, std::int64_t cost, std::uint64_t stride) {
    std::array<char, kKeyBytes> text;
    const BatchItem item{.key = {text.data(), text.size()}, .cost = cost};
    std::size_t allowed = 0;
    for (std::uint64_t id = 0; id < options_.keys; id += stride) {
      WriteKey(id, text.data());
      Decision decision;
      Require(store.CheckBatch({&item, 1}, {&decision, 1}).has_value(), "a check succeeds");
      allowed += decision.allowed ? 1U : 0U;
    }
    return allowed;
  }

  void FillGovernor() {
    library_.emplace(options_.governor);
    const std::uint32_t burst =
        options_.outcome == Outcome::kAllow ? std::numeric_limits<std::uint32_t>::max() : 1;
    for (const GovernorKey key : {GovernorKey::kString, GovernorKey::kNumber}) {
      for (const bool clock : {true, false}) {
        governors_.push_back(std::make_unique<Governor>(
            Governor{.name = key == GovernorKey::kString ? "governor" : "governor_number",
                     .clock = clock,
                     .limiter = {*library_, burst, clock, key}}));
      }
    }
    const GovernorLibrary::Queries queries(*library_, KeySequence::EachOnce(0, options_.keys));
    for (const auto& governor : governors_) {
      const auto count_allowed = [&] { return governor->limiter.Check(queries, 0, options_.keys); };
      Require(count_allowed() == options_.keys, "every key is new");
      if (options_.outcome == Outcome::kDeny) {
        Require(count_allowed() == 0, "every key is used up");
      }
      Require(governor->limiter.entries() == options_.keys, "governor holds as many as went in");
    }
  }

  template <typename Store>
  void RegisterStore(const std::string& name, Store& store, const Plan& plan) {
    const auto measure =
        plan.what.batched
            ? (plan.what.clock ? &MeasureBatches<true, Store> : &MeasureBatches<false, Store>)
            : (plan.what.clock ? &MeasureSingles<true, Store> : &MeasureSingles<false, Store>);
    const std::size_t per_call = plan.what.batched ? kBatch : 1;
    benchmark::RegisterBenchmark(
        (name + "/" + plan.what.Name()).c_str(),
        [measure, &store, plan](benchmark::State& state) { measure(state, store, plan); })
        ->Iterations(static_cast<std::int64_t>(plan.amount.checks / per_call))
        ->Threads(plan.what.threads)
        ->UseRealTime();
  }

  void RegisterGovernors(const Plan& plan) {
    for (const auto& governor : governors_) {
      if (governor->clock != plan.what.clock) continue;
      const GovernorLibrary::Queries& queries = QueriesFor(plan.sequence);
      const auto measure = [&limiter = governor->limiter, &queries, plan](benchmark::State& state) {
        const std::size_t start = plan.StartOf(state);
        std::size_t allowed = limiter.Check(queries, start, plan.amount.warm_up);
        std::size_t at = (start + plan.amount.warm_up) % plan.sequence.size();
        for ([[maybe_unused]] auto _ : state) {
          allowed += limiter.Check(queries, at, kBatch);
          at = (at + kBatch) % plan.sequence.size();
        }
        plan.Finish(state, plan.amount.warm_up + plan.amount.checks, allowed);
      };
      benchmark::RegisterBenchmark((governor->name + "/" + plan.what.Name()).c_str(), measure)
          ->Iterations(static_cast<std::int64_t>(plan.amount.checks / kBatch))
          ->Threads(plan.what.threads)
          ->UseRealTime();
    }
  }

  const GovernorLibrary::Queries& QueriesFor(const KeySequence& sequence) {
    auto& queries = queries_[&sequence];
    if (queries == nullptr) {
      queries = std::make_unique<GovernorLibrary::Queries>(*library_, sequence);
    }
    return *queries;
  }

  const ChecksOptions& options_;
  const Limit limit_;
  Limiter weir_;
  std::unique_ptr<BoostStore<ByFingerprint>> fingerprints_;
  std::unique_ptr<BoostStore<ByString>> strings_;
  std::optional<GovernorLibrary> library_;
  std::vector<std::unique_ptr<Governor>> governors_;
  std::map<const KeySequence*, std::unique_ptr<GovernorLibrary::Queries>> queries_;
};

}  // namespace

void RunChecks(const ChecksOptions& options, Results& results) {
  const std::size_t length = options.keys >= 10'000'000 ? 4'000'000 : 2'000'000;
  const auto uniform = KeySequence::Drawn(Spread::kUniform, options.keys, length);
  const auto zipf = KeySequence::Drawn(Spread::kZipf, options.keys, length);
  Subjects subjects(options);
  for (const Spread spread : {Spread::kUniform, Spread::kZipf}) {
    if (options.keys == 1 && spread == Spread::kZipf) continue;
    for (const bool clock : {false, true}) {
      for (const bool batched : {false, true}) {
        for (const int threads : {1, 2}) {
          subjects.Register({.outcome = options.outcome,
                             .keys = options.keys,
                             .spread = spread,
                             .batched = batched,
                             .threads = threads,
                             .clock = clock},
                            spread == Spread::kUniform ? uniform : zipf);
        }
      }
    }
  }
  results.RunRounds(options.rounds);
  subjects.CheckThatAllIsThere();
  benchmark::ClearRegisteredBenchmarks();
}

}  // namespace weir::bench
