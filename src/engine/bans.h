// Who is denied too often is shut out: what happens after a denial under a rule that bans.
//
// All of it is counted by ordinary limits in the same store, each under a scope of its own: a log
// of denials, a bucket of one unit that takes as long as the ban to come back, and a bucket that
// counts how often a key was banned lately.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <weir/time.h>

#include "engine/call.h"
#include "engine/policy_version.h"
#include "store/store.h"

namespace weir {

// Counts one denial, a question at a time, because a store may take a while to answer each:
//
//   while (const Charge* charge = count.Next()) count.Take(Decided(*charge));
//   if (count.length() > Duration(0)) call.Ban(number, count.length());
class DenialCount {
 public:
  // `subject` is whom the rule counts, for stores that want to know, and stays as long as this.
  DenialCount(const PolicyVersion& version, const Call::Denial& denial,
              std::string_view subject) noexcept;

  // What to ask the store next; null if that was all.
  const Charge* Next() const noexcept { return stage_ == Stage::kOver ? nullptr : &charge_; }
  void Take(const Decision& decision) noexcept;

  // How long the ban lasts that it led to; zero if it led to none.
  Duration length() const noexcept { return length_; }

 private:
  enum class Stage : std::uint8_t { kDenials, kSteps, kBan, kForget, kOver };

  void Ask(Stage stage, Aspect aspect, const Limit& limit, Verb verb) noexcept;
  void AskForBan(std::size_t step) noexcept;

  const BlockPlan& block_;
  const RuleInForce& rule_;
  const std::uint64_t key_;
  Stage stage_ = Stage::kDenials;
  Charge charge_;
  Duration length_{0};
};

// The same for all denials of a call, whose rules ban those whom it leads to a ban.
class DenialCounts {
 public:
  explicit DenialCounts(Call& call) noexcept : call_(call) { Go(0); }

  const Charge* Next() noexcept;
  void Take(const Decision& decision) noexcept { count_->Take(decision); }
  // The store could not be asked: on with the next denial.
  void Skip() noexcept { Go(number_ + 1); }

 private:
  void Go(std::size_t number) noexcept;

  Call& call_;
  std::size_t number_ = 0;  // Of the rule whose denial is counted.
  std::optional<DenialCount> count_;
};

// The same by a store that answers before it returns.
Duration CountDenial(const PolicyVersion& version, const Call::Denial& denial,
                     std::string_view subject, Store& store, Now now) noexcept;

}  // namespace weir
