// Whether what was denied had to be, and whether what is left in the end agrees with what was let
// through: both by an oracle that is fed with every charge that was or may have been.
#pragma once

#include "lab/fleet/judge.h"
#include "lab/fleet/judge_evidence.h"

namespace weir::lab {

void JudgeDenials(const Evidence& evidence, Verdict& verdict);

}  // namespace weir::lab
