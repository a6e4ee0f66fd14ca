#include "lab/calibrate/proposal.h"

#include <algorithm>

#include "lab/calibrate/quantile.h"

namespace weir::lab {
namespace {

Behaviour* FindPeriod(Calibration& calibration, std::size_t period) {
  const auto found = std::ranges::find(calibration.behaviour, period, &Behaviour::period);
  return found == calibration.behaviour.end() ? nullptr : &*found;
}

// The longest period after `base` that the log has seen twice; `base` if there is none.
std::size_t LongestSeenTwice(const Calibration& calibration, std::size_t base) {
  std::size_t longest = base;
  for (const Behaviour& behaviour : calibration.behaviour) {
    if (behaviour.twice && behaviour.period > base) longest = behaviour.period;
  }
  return longest;
}

ProposedRule RuleFor(const Behaviour& behaviour, const std::string& base_name, std::string why) {
  const Period& period = kAllPeriods[behaviour.period];
  return {.name = base_name + "-" + std::string(period.word),
          .period = behaviour.period,
          .count = behaviour.limit,
          .peak_at_quantile = behaviour.at_quantile,
          .why = std::move(why)};
}

class Proposer {
 public:
  Proposer(const ClientTable& clients, const SetApart& apart, ProposedRule base,
           Calibration& calibration)
      : clients_(clients), apart_(apart), name_(base.name), calibration_(calibration) {
    calibration_.rules.push_back(std::move(base));
  }

  void AddLongest() {
    const ProposedRule& base = calibration_.rules.front();
    const std::size_t longest = LongestSeenTwice(calibration_, base.period);
    if (longest == base.period) return;
    Behaviour& behaviour = *FindPeriod(calibration_, longest);
    // Whoever sends all there is to send at once needs no second rule.
    if (behaviour.limit <= std::max(base.burst, std::int64_t{1})) {
      behaviour.why_not = "what clients send in it they send at once: the first rule says the same";
      return;
    }
    Add(behaviour, "for those who never send much at a time, but never stop");
  }

  // Those whom no rule so far stops.
  void AddForThoseWhoGetPast() {
    for (Behaviour& behaviour : calibration_.behaviour) {
      if (!behaviour.in_policy.empty() || behaviour.gap.above == 0) continue;
      std::size_t past = 0;
      for (std::size_t i = 0; i < clients_.size(); ++i) {
        const auto id = static_cast<ClientId>(i);
        const bool exceeds = clients_[id].windows[behaviour.period].peak() > behaviour.limit;
        if (apart_.Has(id) && exceeds && !IsStopped(id)) ++past;
      }
      if (past == 0) continue;
      behaviour.why_not.clear();
      Add(behaviour, "for " + std::to_string(past) +
                         " of those set apart, whom the other rules would let through");
    }
  }

  void SayWhyNot() {
    for (Behaviour& behaviour : calibration_.behaviour) {
      if (!behaviour.in_policy.empty() || !behaviour.why_not.empty()) continue;
      if (behaviour.period < calibration_.rules.front().period) {
        behaviour.why_not =
            "the burst of the rule " + std::string(base_period().adverb) + " sees to it";
      } else if (!behaviour.twice) {
        behaviour.why_not = "the log lasts for less than two of them";
      } else {
        behaviour.why_not = "the rules for shorter and longer times leave it nothing to decide";
      }
    }
  }

 private:
  const Period& base_period() const { return kAllPeriods[calibration_.rules.front().period]; }

  void Add(Behaviour& behaviour, std::string why) {
    ProposedRule rule = RuleFor(behaviour, name_, std::move(why));
    // A quota by the day that begins anew at midnight is what people expect. But around midnight it
    // lets twice as much through, which is no good where a rule names paths like /auth/login.
    rule.fixed_window = behaviour.period == kDay && calibration_.chosen_part != "path";
    calibration_.rules.push_back(std::move(rule));
    behaviour.in_policy = calibration_.rules.back().name;
  }

  // More than the rule admits at most in its period, whenever that begins.
  bool IsStopped(ClientId id) const {
    return std::ranges::any_of(calibration_.rules, [&](const ProposedRule& rule) {
      const std::int64_t burst = rule.burst == 0 ? rule.count : rule.burst;
      return clients_[id].windows[rule.period].peak() > rule.count + burst;
    });
  }

  const ClientTable& clients_;
  const SetApart& apart_;
  const std::string name_;
  Calibration& calibration_;
};

}  // namespace

ProposedRule BaseRule(const Calibration& calibration, const std::string& name) {
  const auto minute = std::ranges::find(calibration.behaviour, kMinute, &Behaviour::period);
  const bool has_minute = minute != calibration.behaviour.end();
  const Behaviour& behaviour = has_minute ? *minute : calibration.behaviour.front();
  return {.name = name,
          .period = behaviour.period,
          .count = behaviour.limit,
          .peak_at_quantile = behaviour.at_quantile,
          .why = "for floods: its rate is what clients need " +
                 std::string(kAllPeriods[behaviour.period].adverb) +
                 ", its burst what they need at once at that rate"};
}

void ProposeRules(const ClientTable& clients, const SetApart& apart, const BurstNeeds& needs,
                  ProposedRule base, Calibration& calibration) {
  std::vector<std::uint32_t> bursts;
  bursts.reserve(clients.size());
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const auto id = static_cast<ClientId>(i);
    if (!apart.Has(id)) bursts.push_back(needs.Of(id));
  }
  std::ranges::sort(bursts);
  base.burst_at_quantile = QuantileOf(bursts, calibration.settings.quantile);
  base.burst =
      std::min(base.count, FriendlyFrom(calibration.settings.margin * base.burst_at_quantile));
  FindPeriod(calibration, base.period)->in_policy = base.name;
  Proposer proposer(clients, apart, std::move(base), calibration);
  proposer.AddLongest();
  proposer.AddForThoseWhoGetPast();
  proposer.SayWhyNot();
}

}  // namespace weir::lab
