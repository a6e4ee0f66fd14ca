// Which rules to propose. Not one for each length of time: most of those would never decide.
//
//   a bucket by the minute      Its rate is what clients need in a minute, its burst what they need
//                               at once at that rate. It stops floods within seconds.
//   one by the longest time     that the log has seen twice, the hour or the day: for those who
//                               stay below the first all day long.
//   another                     only if somebody who was set apart would get past both.
//
// A log of less than a minute has nothing to say but for the second.
#pragma once

#include <vector>

#include "lab/calibrate/behaviour.h"
#include "lab/calibrate/burst_needs.h"
#include "lab/calibrate/calibration.h"
#include "lab/calibrate/client_table.h"

namespace weir::lab {

// The first rule, as far as peaks tell; its burst is not known yet.
ProposedRule BaseRule(const Calibration& calibration, const std::string& name);

// Gives it its burst, adds the others, and says for all periods which rule has them or why none
// does.
void ProposeRules(const ClientTable& clients, const SetApart& apart, const BurstNeeds& needs,
                  ProposedRule base, Calibration& calibration);

}  // namespace weir::lab
