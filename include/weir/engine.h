// The engine: a request in, one decision out, under a policy that may change meanwhile.
//
//   auto engine = weir::Engine::Make(policy);
//   const weir::Answer answer = engine->Check({.ip = "203.0.113.9", .user = "ann", .path = "/"});
//   if (!answer.decision.allowed) Reply429(answer.decision.retry_after, answer.message);
//
// All rules that match a request are one group: it is charged to all of them or to none. All
// methods but Save may be called from any thread. If the policy's store is shared with other
// processes, those that decide wait for it, a few milliseconds at most when it fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/clock.h>
#include <weir/decision.h>
#include <weir/identity.h>
#include <weir/limiter.h>
#include <weir/policy.h>
#include <weir/request.h>
#include <weir/result.h>
#include <weir/snapshot.h>

namespace weir {

struct EngineOptions {
  Clock* clock = nullptr;  // The machine's clock if null. Must outlive the engine.

  // Told, in plain words, of what a person should know: a tier that does not exist, forwarding
  // headers from a proxy that is not trusted, a limit that starts anew, a store that fails and one
  // that is back. Each kind of thing once or a few times, never for every request. May be called
  // from any thread that uses the engine, and from the engine's own; must not call the engine.
  std::function<void(std::string_view)> on_notice{};

  // How many reservations and leases, and how many waiters, there may be at a time. Beyond that a
  // request is denied with the reason `overload`.
  std::size_t max_reservations = 65'536;
  std::size_t max_waiters = 10'000;
};

// What one rule had to say about a request.
struct RuleDecision {
  Decision decision{};
  bool shadow = false;  // It had no say.
  // How long it takes to have the whole capacity anew: the time to fill a bucket, or a window. Zero
  // where time brings nothing back: under a concurrency limit, `unlimited` or `deny`.
  Duration window{0};
  // Stands for the key and its rule: the same for the same ones as long as the engine, and for no
  // others.
  std::uint64_t key = 0;
};

// The texts in it stay good as long as the engine.
struct Answer {
  Decision decision{};
  std::string_view message{};  // Of the rule that denied, if it has one.
  std::size_t rules = 0;       // How many rules counted the request.
};

// What a request that is ready to wait waits for.
enum class WaitFor : std::uint8_t {
  kRoom,    // Under every rule.
  kQueues,  // Its turn where a rule queues; elsewhere it is denied as one that does not wait.
};

// One of several requests that are decided together, each by itself.
struct BatchRequest {
  Request request{};
  std::int64_t cost = 1;
  std::span<RuleDecision> each{};  // As for Engine::Check.
  bool at_once = false;            // A queue that would make it wait denies it.
  // It is decided for a time so much after that of the batch, and not before that of the request in
  // front of it: for those who decide what has happened already. A shared store has its own time.
  Duration later{0};
  Answer answer{};  // Out.
};

// A request whose limit comes with it rather than from a policy.
struct LimitRequest {
  enum class Verb : std::uint8_t { kCheck, kPeek, kRefund };

  std::string_view key{};
  const Limit* limit = nullptr;
  std::int64_t cost = 1;
  Verb verb = Verb::kCheck;
  Decision decision{};  // Out. Its rule has no name.
};

// One part of a request that has several, each matched by itself: Envoy's descriptors.
struct RequestPart {
  Request request{};
  std::int64_t cost = 1;
  // If it is set only this limit counts the part, under `key`, as Engine::CheckLimits has it.
  const Limit* limit = nullptr;
  std::string_view key{};
};

// A key that was denied often.
struct DeniedKey {
  std::string rule;
  std::string key;            // As it is counted: user=ann.
  std::uint64_t denials = 0;  // Never too few; too many by at most
  std::uint64_t error = 0;    // this.
};

// How often a rule decided what since the engine was made. Those beyond the first 1,000 rules are
// counted together, as `other`; what met no rule has an empty name.
struct RuleCount {
  std::string_view rule;
  std::string_view outcome;  // allowed, denied, shadow_denied, allow_list, deny_list, no_rule
  std::uint64_t count = 0;
};

// What became of the counts when a policy was replaced.
struct PolicyChange {
  std::uint64_t version = 0;               // Of the policy in force now. The first is 1.
  std::vector<std::string> rules_added{};  // By their names.
  std::vector<std::string> rules_removed{};
  std::vector<std::string> rules_changed{};   // In something other than their limits.
  std::vector<std::string> limits_changed{};  // Their keys keep what they have used;
  std::vector<std::string> started_anew{};    // the keys of these are fresh.
  // Counts are kept in another store: all keys have used what that knows of, if anything.
  bool store_changed = false;
};

struct EngineStats {
  // What this process holds. With a shared store that is what decides in its place when it fails.
  LimiterStats store{};
  std::uint64_t version = 0;
};

// How a store fares that is shared with other processes. Of one in this process's memory there is
// nothing to tell.
struct StoreHealth {
  // Calls that failed, by why.
  struct Fault {
    std::string_view kind;  // timeout, refused, lost, overload, breaker, credentials, no_memory
    std::uint64_t count = 0;
  };
  // So many calls were answered that took at most this long, and longer than the one before.
  struct Times {
    Duration bound{0};  // kNever for the last.
    std::uint64_t count = 0;
  };
  struct Server {
    std::string name;           // 127.0.0.1:6379
    bool breaker_open = false;  // It failed too often, and is left alone but for probes.
    std::vector<Fault> faults{};
    std::vector<Times> times{};
    Duration time_sum{0};
    std::uint64_t connections = 0;
    std::uint64_t in_flight = 0;  // Calls under way.
  };

  bool shared = false;
  bool degraded = false;             // The last call failed: rules decide as they say for that.
  Duration degraded_for{0};          // How long that has lasted; zero if it is well.
  std::uint64_t degraded_times = 0;  // How often it has begun.
  int fleet_size = 1;                // How many processes share the store.
  // Requests that were decided in the store's place: let through, refused, by this process's share.
  std::uint64_t decided_open = 0;
  std::uint64_t decided_closed = 0;
  std::uint64_t decided_fallback = 0;
  std::vector<Server> servers{};  // Those that were talked to or tried.
};

struct Explanation;
struct LoadedEngine;

class Engine {
 public:
  // The error names a setting that cannot be used: an address, a secret that is not there. A shared
  // store that cannot be reached is no error: rules decide as they say for that, until it can.
  [[nodiscard]] static Result<Engine> Make(const Policy& policy, const EngineOptions& options = {});

  // The same with what Save wrote, in this process or another: keys have used what they had, less
  // what time has brought back since, and leases and reservations can be settled. Limits that are
  // others now take over as they would by Apply. Time is by the wall clock: if that was set back
  // meanwhile, no time has passed. An error if the bytes are not what Save wrote.
  [[nodiscard]] static Result<LoadedEngine> Load(const Policy& policy, const ByteSource& source,
                                                 const EngineOptions& options = {});
  // Writes the state of all keys that are not fresh, if it is in this process's memory. The one
  // method that must have the engine to itself: call it when nothing else uses it any more. The
  // bytes tell nobody's name, but the secret that keys are hashed with: keep them from others.
  Result<SnapshotReport> Save(const ByteSink& sink);

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Takes what the request costs if every rule has room for it, else nothing. `ask.cost` is for
  // rules that have no cost of their own. What each rule decided goes into `each`, as far as there
  // is room, in the order of the policy.
  Answer Check(const Request& request, const Ask& ask = {}, std::span<RuleDecision> each = {});
  // The same for a request as it came in over a socket: who is asking is found as the policy says,
  // and the policy that says so is the one that decides.
  Answer Check(const Incoming& incoming, IdentityStorage& storage, const Ask& ask = {},
               std::span<RuleDecision> each = {});
  // Many at once: faster than one after the other, and all under one policy.
  void CheckBatch(std::span<BatchRequest> requests, Now now);
  // The same under limits that come with the requests. A key counts by itself, apart from those of
  // all rules, and goes by the limit it is asked under: what it has used of a bucket is time, which
  // another bucket reads in its own way.
  void CheckLimits(std::span<LimitRequest> requests, Now now);

  // All parts of a request, of which at most kMostParts count, are charged or none is. What speaks
  // for each part goes into `each`, as far as there is room; the answer speaks for all. A queue
  // that would make a part wait denies it.
  static constexpr std::size_t kMostParts = 64;
  Answer CheckTogether(std::span<const RequestPart> parts, Now now,
                       std::span<RuleDecision> each = {});
  // Gives back what they took.
  Answer RefundTogether(std::span<const RequestPart> parts, Now now,
                        std::span<RuleDecision> each = {});

  // Check, ready to wait up to `patience`, but no longer than the policy's max_wait. `done` is
  // called once: from this thread before CheckThen returns if there is nothing to wait for, else
  // later from one of the engine's. It must neither block nor throw. A bucket books ahead, so a
  // refusal comes at once; elsewhere those who wait for the same keys are served in the order in
  // which they came. With a shared store the first attempt, too, is made by the engine's thread, so
  // that neither this nor CancelWait ever waits for the store.
  using WaitDone = std::function<void(const Answer&, std::span<const RuleDecision>)>;
  //
  // Those who cannot be told of a delay wait for queues, perhaps for no time at all: then one that
  // would have to wait is denied.
  WaitId CheckThen(const Request& request, const Ask& ask, Duration patience, WaitDone done,
                   WaitFor what = WaitFor::kRoom);
  // Whether a rule that queues matches, so that the answer may come with a delay. Looks at no more
  // than that.
  bool MayQueue(const Request& request) const;
  // Stops waiting; `done` is not called any more. What was booked ahead goes back if nobody has
  // booked behind it. False if the wait is over already.
  bool CancelWait(WaitId id);
  // As EngineOptions::max_waiters, for those who come from now on.
  void SetMaxWaiters(std::size_t most);

  // What Check would say; takes nothing, and counts for no ban.
  Answer Peek(const Request& request, const Ask& ask = {}, std::span<RuleDecision> each = {});
  // Under all rules that match; `request.rules` names those that are meant.
  Answer Refund(const Request& request, const Ask& ask = {});
  Answer Penalize(const Request& request, const Ask& ask = {});
  // Makes the keys fresh and lifts their bans.
  Answer Reset(const Request& request, const Ask& ask = {});

  // Takes an estimate now, to be settled when the real cost is known. Rules with a cost of their
  // own keep what they took. The reservation is in the decision.
  Answer Reserve(const Request& request, const Ask& ask = {},
                 Duration ttl = std::chrono::seconds(60));
  Result<Decision> Commit(ReservationId reservation, std::int64_t cost);
  // It cost what was reserved.
  Result<Decision> Commit(ReservationId reservation);
  Result<Decision> Cancel(ReservationId reservation);
  // Gives back a place under a concurrency limit.
  Result<Decision> Release(ReservationId lease) { return Cancel(lease); }

  // Puts another policy in force at once: every decision is made under one policy as a whole, and
  // counted in its store. Keys keep what they have used where the rule of the same name counts
  // alike, as long as the store is the same; what was reserved in another can no longer be settled.
  // The errors are those of Make: then nothing has changed.
  [[nodiscard]] Result<PolicyChange> Apply(const Policy& policy);
  Policy policy() const;
  // How the policy in force finds out who is asking.
  Identity identity() const;

  // How a decision about the request would come about. Takes nothing.
  Explanation Explain(const Request& request, const Ask& ask = {}) const;

  EngineStats Stats() const;
  StoreHealth Health() const;
  // Those above zero.
  std::vector<RuleCount> RuleCounts() const;
  // Those denied most, the first first; of some thousand that are kept in mind. Old denials fade:
  // every minute what was counted is halved.
  std::vector<DeniedKey> TopDenied(std::size_t most) const;
  // Whether the policy in force has a rule of this name.
  bool HasRule(std::string_view name) const;

 private:
  friend struct EngineParts;
  struct State;
  explicit Engine(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

struct LoadedEngine {
  Engine engine;
  SnapshotReport report{};
};

// One rule as seen from a request.
struct RuleExplanation {
  std::string rule;
  bool matches = false;
  std::string why_not;  // The first condition that does not hold.
  std::string key;      // As it is counted: user=ann.
  std::string limit;    // 100/min burst 50
  std::string origin;   // Where the limit came from: the rule, a tier, an override.
  std::string mode;     // enforce, shadow, off
  std::int64_t cost = 0;
  std::string cost_origin;
  Decision decision{};  // As Peek has it.
};

struct Explanation {
  Decision decision{};
  std::string list;                    // allow[0] or deny[1], if a list decides.
  std::string tier;                    // The one that counts.
  std::vector<RuleExplanation> rules;  // All of the policy, in its order.
};

}  // namespace weir
