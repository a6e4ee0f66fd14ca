// One request on its way through the engine: which rules it meets, what they charge, and what comes
// of that. Everything is kept in place; nothing is allocated for an ordinary request.
//
// A Call has room for the largest group there may be, which is some 20 KB. Where thousands are
// under way at a time, because a shared store takes a while, most should be a SmallCall.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <weir/engine.h>

#include "base/hash.h"
#include "base/inline_vector.h"
#include "engine/policy_version.h"
#include "limit/limit_check.h"
#include "policy/compiled_policy.h"
#include "policy/facts.h"
#include "policy/subject.h"
#include "store/key_hashes.h"
#include "store/store.h"

namespace weir {

struct CallTypes {
  enum class Course : std::uint8_t {
    kCharges,    // The group must be decided.
    kAllowList,  // Nothing is counted: the answer is known.
    kDenyList,
    kNoRule,
    kTooMany,  // More rules match than there is room for.
  };

  // What bans are about: a rule that bans and has just denied the request for want of room. A mere
  // question is not counted, nor is one who is banned already.
  struct Denial {
    std::uint32_t rule;
    std::uint64_t key;  // The hash of the key, without a scope.
  };
};

// kRoom is the number of charges; others may have no more than that.
template <std::size_t kRoom>
class CallWithRoom : public CallTypes {
 public:
  // Everything must stay as long as this.
  CallWithRoom(const PolicyVersion& version, const KeyHasher& hasher,
               const Request& request) noexcept
      : version_(version),
        hasher_(hasher),
        tier_(version.compiled().TierOf(request.tier)),
        stated_tier_(request.tier),
        request_(NeedsDefaultTier() ? Changed(request) : request),
        facts_(request_) {}
  CallWithRoom(const CallWithRoom&) = delete;
  CallWithRoom& operator=(const CallWithRoom&) = delete;

  // Finds the rules and makes their charges.
  Course Prepare(Verb verb, std::int64_t cost) noexcept;

  // Once it is prepared, for a store that is shared: it wants to know whom charges count, and those
  // who answer in its place want to know how. From here on nothing of the request is needed.
  void NameCharges() noexcept;

  // With a shared store: when it was asked, by the clock that time-outs go by.
  void SetAskedAt(SteadyTime when) noexcept { asked_at_ = when; }
  SteadyTime asked_at() const noexcept { return asked_at_; }

  Group& group() noexcept { return group_; }
  std::int64_t cost() const noexcept { return cost_; }
  const PolicyVersion& version() const noexcept { return version_; }

  // --- For those who are ready to wait. ---

  // Of the rules that have a say, their bans not included.
  void ListKeys(KeyHashes& keys) const noexcept;
  // True if every rule that may stop the request can be booked ahead.
  bool BooksAhead() const noexcept;
  // How long to wait at most, by booking ahead. Next to a place under a concurrency limit only a
  // queue books, which admits nobody otherwise: a place that is held while a bucket fills is of
  // use to nobody.
  void SetWait(Duration wait, WaitFor what = WaitFor::kRoom) noexcept;
  // No time at all: a queue that would make the request wait denies it.
  void RefuseDelays() noexcept;
  // Another verb for all; kCheck or kPeek.
  void SetVerb(Verb verb) noexcept;

  // --- Once the group is decided, in this order. ---

  // In the store's place, by what each rule said so long ago to somebody with the same keys.
  void Suppose(std::span<const RuleDecision> heard, Duration age) noexcept;
  // For a group that ended with an error: every rule denies.
  void Fail() noexcept;
  // Where a ban is in force, its rule denies.
  void TakeUpBans() noexcept {
    if (some_ban_) TakeUpSomeBans();
  }

  // The number of the first rule from `number` on that has one; rules() if there is none.
  std::size_t NextDenial(std::size_t number) const noexcept {
    return some_ban_ ? FindDenial(number) : met_.size();
  }
  Denial DenialUnder(std::size_t number) const noexcept {
    return {.rule = met_[number].rule, .key = keys_[met_[number].key].hash};
  }
  // The denial under the rule of this number led to a ban.
  void Ban(std::size_t number, Duration length) noexcept { DenyFor(number, length); }

  // `sink` is void(std::size_t number, const RuleInForce&, const Charge&, const Decision&).
  template <typename Sink>
  void ForEachRule(Sink&& sink) const noexcept {
    for (std::size_t i = 0; i < met_.size(); ++i) {
      sink(i, version_.rules[met_[i].rule], charges_[i], decisions_[i]);
    }
  }
  // Whom the rule of this number counts, as text. Stays as long as this.
  std::string_view SubjectOf(std::size_t number) noexcept {
    const Met& met = met_[number];
    return SubjectOf(keys_[met.key], version_.compiled().MatchOf(met.rule));
  }
  // Of one that was denied: whether time or others may still let it through.
  bool MayPassLater() const noexcept;
  // Of one that was denied for want of a place under a concurrency limit, which may come back at
  // any time: how long all others will deny it at least. None if no place is missing.
  std::optional<Duration> DeniedBesidesPlaces() const noexcept;
  // What was taken of buckets and windows, by the receipts of the charges.
  template <typename Sink>  // void(const Charge&, const Receipt&)
  void ForEachTaken(std::span<const Receipt> receipts, Sink&& sink) const {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
      if (receipts[i].charged == 0 || IsPlaces(*charges_[i].limit)) continue;
      sink(charges_[i], receipts[i]);
    }
  }

  // The answer; `each` is filled as Engine::Check says.
  void Conclude(std::span<RuleDecision> each, Answer& answer) noexcept;

  bool has_unknown_tier() const noexcept { return !tier_.known; }
  std::string_view stated_tier() const noexcept { return stated_tier_; }
  std::size_t rules() const noexcept { return met_.size(); }
  const Facts& facts() const noexcept { return facts_; }

 private:
  static constexpr std::uint8_t kNoBan = 255;
  // A rule that matches. Its charge has the same number.
  struct Met {
    std::uint32_t rule;
    std::uint8_t key;  // The number of its key.
    bool bans;
    std::uint8_t ban = kNoBan;  // The number of the charge that asks for a ban.
  };
  // Rules often share one.
  struct Key {
    std::uint32_t plan;
    bool complete;
    std::uint64_t hash;
    std::string_view subject{};  // Empty until somebody wants it: most requests do without.
  };
  // Where their texts are, side by side; the last one may need more room while it is written.
  using Texts = std::array<char, (kRoom - 1) * kMostSubjectBytes + SubjectWriter::kBufferBytes>;

  // Only for those who have no tier, or one that does not exist, is a request copied.
  bool NeedsDefaultTier() const noexcept {
    const bool has_one = !stated_tier_.empty() && tier_.known;
    return !has_one && !version_.compiled().default_tier_name.empty();
  }
  const Request& Changed(const Request& request) noexcept {
    return changed_.emplace(version_.compiled().WithTierThatCounts(request));
  }
  // The number of the key.
  std::uint8_t KeyOf(std::uint32_t plan, std::uint32_t rule) noexcept;
  std::string_view SubjectOf(Key& key, const CompiledMatch& match) noexcept {
    return key.subject.empty() ? WriteSubject(key, match) : key.subject;
  }
  std::string_view WriteSubject(Key& key, const CompiledMatch& match) noexcept;
  bool IsAskedFor(const RuleInForce& rule) const noexcept {
    return request_.rules.empty() || IsNamed(rule);
  }
  bool IsNamed(const RuleInForce& rule) const noexcept;
  bool Meet(std::uint32_t number, Verb verb, std::int64_t cost) noexcept;
  // One that is not plain.
  void MeetSpecial(std::uint32_t number, Verb verb, std::int64_t cost) noexcept;
  // Whether somebody is banned is asked together with everything else, so that the answer is of one
  // moment: a question of cost 0 about the ban's own key. False if there is no room.
  bool AddBans(Verb verb) noexcept;
  void TakeUpSomeBans() noexcept;
  std::size_t FindDenial(std::size_t number) const noexcept;
  // One that could not be asked about is none.
  bool IsBanned(const Met& met) const noexcept {
    return met.ban != kNoBan && !decisions_[met.ban].allowed &&
           decisions_[met.ban].reason != Reason::kStoreFailure;
  }
  void DenyFor(std::size_t number, Duration rest) noexcept;
  void Add(const Charge& charge) noexcept {
    decisions_.emplace_back_unset();
    charges_.emplace_back(charge);
  }

  const PolicyVersion& version_;
  const KeyHasher& hasher_;
  const CompiledPolicy::Tier tier_;
  const std::string_view stated_tier_;
  std::optional<Request> changed_;
  const Request& request_;
  Facts facts_;
  std::int64_t cost_ = 0;  // As it was stated.
  bool some_ban_ = false;  // Whether one of the rules met does.
  WaitFor waits_for_ = WaitFor::kRoom;
  InlineVector<Met, kRoom> met_;
  InlineVector<Key, kRoom> keys_;
  InlineVector<Charge, kRoom> charges_;
  InlineVector<Decision, kRoom> decisions_;
  SteadyTime asked_at_{};
  std::size_t texts_used_ = 0;
  Texts texts_;
  Group group_;
};

using Call = CallWithRoom<kMaxGroupCharges>;
using SmallCall = CallWithRoom<8>;
extern template class CallWithRoom<kMaxGroupCharges>;
extern template class CallWithRoom<8>;

}  // namespace weir
