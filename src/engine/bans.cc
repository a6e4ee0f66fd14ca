#include "engine/bans.h"

#include <algorithm>
#include <array>

namespace weir {
namespace {

Decision Do(Store& store, const Charge& charge, Now now) noexcept {
  std::array<Decision, 1> decisions;
  Group group{.charges = {&charge, 1}, .decisions = decisions};
  SubmitOne(store, group, now);
  return decisions[0];
}

}  // namespace

Duration CountDenial(const PolicyVersion& version, const Call::Denial& denial, Store& store,
                     Now now) noexcept {
  const BlockPlan& block = *version.compiled().rules[denial.rule].block;
  const RuleInForce& rule = version.rules[denial.rule];
  Charge denials{
      .rule = rule.name, .hash = denial.key ^ rule.denials_scope, .limit = &block.denials};
  const Decision counted = Do(store, denials, now);
  // Of several that come at once just one takes the last place.
  if (!counted.allowed || counted.remaining != 0) return Duration(0);

  std::size_t step = 0;
  if (block.steps) {
    const Decision taken = Do(store,
                              {.rule = rule.name,
                               .hash = denial.key ^ rule.steps_scope,
                               .limit = &*block.steps,
                               .verb = Verb::kPenalize},
                              now);
    const auto before = static_cast<std::size_t>(
        std::max<std::int64_t>(block.steps->capacity() - taken.remaining - 1, 0));
    step = std::min(before, block.lengths.size() - 1);
  }
  const Limit& length = block.lengths[step];
  Do(store,
     {.rule = rule.name,
      .hash = denial.key ^ rule.ban_scope,
      .limit = &length,
      .verb = Verb::kPenalize},
     now);
  denials.verb = Verb::kReset;
  Do(store, denials, now);
  return length.spec().period;
}

}  // namespace weir
