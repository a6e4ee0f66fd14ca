// What an Engine is made of.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <weir/engine.h>

#include "engine/call.h"
#include "engine/home.h"
#include "engine/notices.h"
#include "engine/policy_version.h"
#include "engine/rule_counters.h"
#include "engine/shared_limits.h"
#include "engine/shared_place.h"
#include "engine/text_keeper.h"
#include "engine/top_denied.h"
#include "engine/versions.h"
#include "store/waiting.h"

namespace weir {

struct SnapshotHead;

struct Engine::State {
  // In memory it may go on from another process's past.
  State(const Policy& policy, const EngineOptions& its_options, std::shared_ptr<Home> home,
        const SnapshotHead* past = nullptr);

  static Result<void> CheckOptions(const EngineOptions& options);
  static Clock& ClockOf(const EngineOptions& options) noexcept {
    return options.clock != nullptr ? *options.clock : SystemClock::Shared();
  }
  // In this process's memory. Identities of keys go by `hasher`, or by one of its own.
  static std::shared_ptr<Home> HomeInMemory(const PolicySpec& spec, const EngineOptions& options,
                                            const KeyHasher* hasher = nullptr);

  // --- The store, wherever it is. Those here wait for it. ---

  static void Decide(const PolicyVersion& version, Group& group, Now now) noexcept;
  static void Prefetch(const PolicyVersion& version, const Group& group) noexcept;

  Answer Do(const Request& request, const Ask& ask, Verb verb,
            std::span<RuleDecision> each) noexcept {
    return DoUnder(*versions.Read(), request, ask, {.verb = verb}, each);
  }
  // What is done, and for how long it is remembered.
  struct Deed {
    Verb verb = Verb::kCheck;
    Action action = Action::kDecide;
    Duration ttl{0};
  };
  // Finds the rules, and tells people what they should know about them.
  template <std::size_t kRoom>
  CallTypes::Course Prepare(CallWithRoom<kRoom>& call, Verb verb, std::int64_t cost) noexcept;
  static Answer AnswerWithoutCounting(Call::Course course, std::int64_t cost) noexcept;
  // After a denial: bans, which may change what the rules say.
  template <std::size_t kRoom>
  void CountDenials(CallWithRoom<kRoom>& call, Now now) noexcept;
  template <std::size_t kRoom>
  void CountSharedDenials(CallWithRoom<kRoom>& call) noexcept;
  // The rules' final say on a request that was not merely asked about.
  template <std::size_t kRoom>
  void NoteOutcome(CallWithRoom<kRoom>& call, Now now) noexcept;
  void NoteOutcome(Call::Course course) noexcept;
  Answer DoUnder(const PolicyVersion& version, const Request& request, const Ask& ask,
                 const Deed& deed, std::span<RuleDecision> each) noexcept;
  // Once it is prepared.
  void Finish(Call& call, Call::Course course, const Deed& deed, Now now,
              std::span<RuleDecision> each, Answer& answer) noexcept;
  // The same for one that counts nothing.
  void FinishUncounted(Call::Course course, std::int64_t cost, const Deed& deed,
                       Answer& answer) noexcept;
  // Once it is decided.
  void Conclude(Call& call, const Deed& deed, Now now, std::span<RuleDecision> each,
                Answer& answer) noexcept;
  void CheckBatch(std::span<BatchRequest> requests, Now now) noexcept;
  void CheckBatchUnder(const PolicyVersion& version, std::span<BatchRequest> requests,
                       Now now) noexcept;
  // Some at a time as well: each is kept until the store has answered.
  static constexpr std::size_t kMostCallsAtOnce = 32;
  void CheckSomeShared(std::span<BatchRequest> requests, Now now) noexcept;
  // Some at a time, because their charges are kept in place.
  static constexpr std::size_t kMostLimitsAtOnce = 32;
  void CheckSomeLimits(std::span<LimitRequest> requests, Now now) noexcept;
  void CheckSomeLimitsIn(MemoryStore& memory, std::span<LimitRequest> requests, Now now) noexcept;
  void CheckSomeSharedLimits(std::span<LimitRequest> requests, Now now) noexcept;
  // Under a limit that came with the request. `subject` is where its key is written, for as long as
  // the charge is needed.
  Charge ChargeFor(const LimitRequest& request, const Limit& limit,
                   SubjectWriter& subject) const noexcept;
  static Verb VerbOf(LimitRequest::Verb verb) noexcept {
    switch (verb) {
      case LimitRequest::Verb::kPeek:
        return Verb::kPeek;
      case LimitRequest::Verb::kRefund:
        return Verb::kRefund;
      default:
        return Verb::kCheck;
    }
  }
  // Of a limit that no shared store can count by.
  static Decision BeyondStore(std::int64_t cost) noexcept;
  class JointCall;
  Answer DoTogether(std::span<const RequestPart> parts, Verb verb, Now now,
                    std::span<RuleDecision> each) noexcept;
  // No cost: what was reserved. No home: that of the policy in force.
  Result<Decision> Settle(Action action, ReservationId reservation,
                          std::optional<std::int64_t> cost, Home* home = nullptr);

  // --- Waiting. ---

  enum class Arrival : std::uint8_t { kNew, kItsTurn, kBehindOthers };
  // A request and how long it is ready to wait from now on.
  struct Patience {
    const Request& request;
    std::int64_t cost;
    Now now;
    Duration rest;
    Arrival arrival;
    bool asks_once = false;  // No time at all: a delay is told rather than waited for.
    WaitFor what = WaitFor::kRoom;
  };
  // What came of one attempt.
  struct Attempted {
    // What a bucket was booked for. With a copy of its limit, for the policy may be gone when it is
    // given back.
    struct Booking {
      std::uint64_t hash;
      Limit limit;
      Receipt receipt;
      std::string_view rule;
      std::string key;  // For a shared store.

      // Good as long as this.
      Charge ToGiveBack() const noexcept;
    };

    Answer answer{};
    std::vector<RuleDecision> each{};
    bool again = false;                    // Denied, but time or others may change that.
    std::vector<std::uint64_t> keys{};     // Of the line it belongs to.
    std::optional<Duration> not_before{};  // As Waiter::Answer says.
    std::vector<Booking> bookings{};       // If it is let through later than now.
    std::shared_ptr<Home> home{};          // Where it took something, if it did.

    void Refuse(Duration retry_after);
    // There is room, but for those who came before.
    void YieldToOthers();
    void TakeOff(Duration passed);
    void Tell(const WaitDone& done);
  };
  class PatientCall;
  class SharedAttempt;
  class SharedGiveBack;
  // What comes of a decided group: whether it passes, and whether that is its last word.
  struct Verdict {
    bool has_room = false;
    bool is_last = false;
  };
  Verdict Weigh(Call& call, Duration rest, bool behind, Attempted& attempted) noexcept;
  // Once denials are counted. `asked` is when the store was.
  void TakeIn(Call& call, std::span<const Receipt> receipts, bool behind, Now asked,
              Attempted& attempted) noexcept;
  WaitId BeginSharedWait(const Patience& arriving, WaitDone done);
  WaitId BeginWait(const Patience& arriving, WaitDone done);
  void Attempt(const PolicyVersion& version, const Patience& patience,
               Attempted& attempted) noexcept;
  bool MustWait(Call& call, Now now, Attempted& attempted) noexcept;
  void Decide(Call& call, const Patience& patience, bool behind, Attempted& attempted) noexcept;
  void GiveBack(Attempted& attempted, Now now) noexcept;

  // --- Another policy. ---

  // Where what it decides is counted: at home, unless it says otherwise.
  Result<std::shared_ptr<Home>> HomeFor(const Policy& policy);
  Result<PolicyChange> Apply(const Policy& policy);
  // How requests are answered there.
  void TakeUpHome(const Home& home, const PolicySpec& spec);
  // What it says about the home that it has.
  void TakeStoreSettings(const PolicySpec& spec, Home& home);
  void NoteUnknownTier(std::string_view tier) noexcept;
  void NoteTooMany() noexcept;

  struct Next {
    std::unique_ptr<PolicyVersion> version{};
    PolicyChange change{};
  };
  Next NextVersion(const Policy& policy, std::shared_ptr<Home> home, const PolicyVersion* before,
                   const LimitsBefore* limits_before = nullptr);
  void TellStartedAnew(const PolicyChange& what);

  static std::int64_t NearestCost(std::int64_t cost) noexcept {
    return std::clamp<std::int64_t>(cost, 0, kMaxCount);
  }
  Now When(const Ask& ask) const noexcept { return ask.now ? *ask.now : clock.Read(); }

  const EngineOptions options;  // As it was made.
  Clock& clock;
  const KeyHasher hasher;            // By which every home knows keys.
  const std::uint64_t limits_scope;  // Of keys whose limits come with the requests.
  std::atomic<FailureMode> limits_failure_mode{FailureMode::kStatic};  // Of those keys.
  Notices notices;
  std::mutex change;  // Held by whoever replaces the policy.
  TextKeeper texts;
  RuleCounters counters;
  DenialSketch top_denied;
  LastLimits last_limits;
  Versions<PolicyVersion> versions;
  std::mutex limits_mutex;
  SharedLimits shared_limits;  // Under the mutex.
  // What those who wait asked, in bytes: requests are as large as clients like.
  static constexpr std::size_t kMostWaitingBytes = std::size_t{64} << 20;
  std::atomic<std::size_t> waiting_bytes{0};
  Homes homes;
  std::atomic<bool> is_shared{false};  // What the policy in force is, for those who have none.
  Waiting waiting;                     // Ends first: those who wait use all the others.
};

}  // namespace weir
