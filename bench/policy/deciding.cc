#include "deciding.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include <weir/engine.h>

#include "base/hash.h"
#include "engine/call.h"
#include "engine/policy_version.h"
#include "engine/rule_counters.h"
#include "engine/text_keeper.h"
#include "harness/keys.h"
#include "harness/limits.h"
#include "harness/require.h"
#include "policies.h"
#include "requests.h"
#include "store/memory/memory_store.h"

namespace weir::bench {
namespace {

// A store that knows all users, and nothing else.
class FilledStore {
 public:
  FilledStore() : store_({.expected_keys = kUsers}, now_) {
    std::array<char, kKeyBytes> text;
    const std::string_view key(text.data(), text.size());
    for (std::uint64_t id = 0; id < kUsers; ++id) {
      WriteKey(id, text.data());
      Require(Check(key, kRoomyFirstCost), "every key is new and has room");
    }
    Require(store_.Stats().entries == kUsers, "the store holds as many keys as went in");
  }

  bool Check(std::string_view key, std::int64_t cost = 1) noexcept {
    Decision decision =
        store_.Decide({.key = key, .hash = store_.Hash(key), .limit = &limit_, .cost = cost}, now_);
    benchmark::DoNotOptimize(decision);
    return decision.allowed;
  }

 private:
  const Now now_ = SystemClock::Shared().Read();
  const Limit limit_ = ParseLimit(kRoomyLimit);
  MemoryStore store_;
};

// A policy in force, without an engine or a store around it.
class InForce {
 public:
  explicit InForce(const PolicyOptions& options) {
    PolicyChange change;
    version_ = MakeVersion(MakePolicy(options), nullptr,
                           {.hasher = hasher_,
                            .texts = texts_,
                            .counters = counters_,
                            .last_limits = last_limits_,
                            .now = now_},
                           change);
  }

  // How many rules the request meets; their charges are made by then.
  std::size_t Prepare(const Request& request) const noexcept {
    Call call(*version_, hasher_, request);
    const Call::Course course = call.Prepare(Verb::kCheck, 1);
    benchmark::DoNotOptimize(call.group().charges.data());
    return course == Call::Course::kCharges ? call.group().charges.size() : 0;
  }

 private:
  const Now now_ = SystemClock::Shared().Read();
  const KeyHasher hasher_{HashKind::kXxh3, 1};
  TextKeeper texts_;
  RuleCounters counters_;
  LastLimits last_limits_;
  std::unique_ptr<PolicyVersion> version_;
};

// An engine that has seen every request of the sequence.
class WarmEngine {
 public:
  WarmEngine(const PolicyOptions& options, Requests& requests)
      : engine_(*Engine::Make(MakePolicy(options))) {
    for (std::size_t i = 0; i < Requests::kLength; ++i) {
      Require(engine_.Check(requests.Next(), {.cost = kFirstCost}).decision.allowed,
              "every request is allowed");
    }
    Require(engine_.Stats().store.evicted_live == 0, "no key is forgotten");
    entries_ = engine_.Stats().store.entries;
  }
  ~WarmEngine() { Require(engine_.Stats().store.entries == entries_, "no key was new"); }

  // By how many rules it was allowed.
  template <bool kClock>
  std::size_t Check(const Request& request) noexcept {
    Ask ask;
    if (!kClock) ask.now = now_;
    Answer answer = engine_.Check(request, ask);
    benchmark::DoNotOptimize(answer);
    return answer.decision.allowed ? answer.rules : 0;
  }

 private:
  // Does not come back while the benchmark runs, so that every key stays alive; and there is room
  // for it many times, because a user comes several times.
  static constexpr std::int64_t kFirstCost = kRoomyFirstCost / 10;

  const Now now_ = SystemClock::Shared().Read();
  Engine engine_;
  std::size_t entries_ = 0;
};

// Runs `step` a fixed number of times; it says how many rules were met.
template <typename Step>
void Register(const std::string& name, std::size_t count, std::size_t rules, Step step) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 std::size_t met = 0;
                                 const std::size_t warm_up = count / 8;
                                 for (std::size_t i = 0; i < warm_up; ++i) met += step();
                                 for ([[maybe_unused]] auto _ : state) met += step();
                                 Require(met == (warm_up + count) * rules,
                                         "every request meets as many rules as it should");
                                 state.SetItemsProcessed(static_cast<std::int64_t>(count));
                               })
      ->Iterations(static_cast<std::int64_t>(count))
      ->UseRealTime();
}

struct MatchCase {
  std::string name;
  PolicyOptions policy;
  std::size_t meets = 3;
};

class Subjects {
 public:
  explicit Subjects(double scale) : scale_(scale) {}

  void RegisterMatching() {
    for (const MatchCase& what : std::vector<MatchCase>{
             {"3_of_3", {.rules = 3}},
             {"3_of_1000", {.rules = 1'000, .hits = Hits::kEndpoint}},
             {"3_of_1000/same_rules", {.rules = 1'000}},
             {"3_of_10000", {.rules = 10'000, .hits = Hits::kEndpoint}},
             {"1_of_1", {.rules = 1, .hits = Hits::kUser}, 1},
             {"1_of_1/hashed", {.rules = 1, .hits = Hits::kUser, .hashed = true}, 1}}) {
      const InForce& policy = *policies_.emplace_back(std::make_unique<InForce>(what.policy));
      Register("match/" + what.name, Scaled(200'000), what.meets,
               [this, &policy] { return policy.Prepare(requests_.Next()); });
      if (what.name == "3_of_1000") RegisterStore();
    }
  }

  void RegisterEngines() {
    for (const MatchCase& what :
         std::vector<MatchCase>{{"1_of_1", {.rules = 1, .hits = Hits::kUser}, 1},
                                {"3_of_3", {.rules = 3}},
                                {"3_of_1000", {.rules = 1'000, .hits = Hits::kEndpoint}}}) {
      WarmEngine& engine =
          *engines_.emplace_back(std::make_unique<WarmEngine>(what.policy, requests_));
      const std::string name = "engine/" + what.name;
      Register(name, Scaled(200'000), what.meets,
               [this, &engine] { return engine.Check<false>(requests_.Next()); });
      Register(name + "/clock", Scaled(200'000), what.meets,
               [this, &engine] { return engine.Check<true>(requests_.Next()); });
    }
  }

  void RegisterIdentify() {
    Register("identify", Scaled(200'000), 1, [this] {
      Request request = identity_->Identify(requests_.NextIncoming(), identity_storage_);
      benchmark::DoNotOptimize(request);
      return request.user.size() == kKeyBytes && !request.ip.empty() ? 1U : 0U;
    });
  }

 private:
  std::size_t Scaled(std::size_t count) const {
    return static_cast<std::size_t>(static_cast<double>(count) * scale_);
  }

  // Right beside the matching that it is compared with.
  void RegisterStore() {
    Register("store/1M", Scaled(1'000'000), 1,
             [this] { return store_.Check(keys_.Next()) ? 1U : 0U; });
  }

  const double scale_;
  Requests requests_;
  FilledStore store_;
  const KeySequence key_texts_ = KeySequence::Drawn(Spread::kUniform, kUsers, Requests::kLength);
  Cursor keys_{key_texts_, 0};
  std::vector<std::unique_ptr<InForce>> policies_;
  std::vector<std::unique_ptr<WarmEngine>> engines_;
  const Result<Identity> identity_ = Identity::Make(MakeSpec({}));
  IdentityStorage identity_storage_;
};

}  // namespace

void RunMatching(const DecidingOptions& options, Results& results) {
  Subjects subjects(options.scale);
  subjects.RegisterMatching();
  subjects.RegisterIdentify();
  results.RunRounds(options.rounds);
  benchmark::ClearRegisteredBenchmarks();
}

void RunEngines(const DecidingOptions& options, Results& results) {
  Subjects subjects(options.scale);
  subjects.RegisterEngines();
  results.RunRounds(options.rounds);
  benchmark::ClearRegisteredBenchmarks();
}

}  // namespace weir::bench
