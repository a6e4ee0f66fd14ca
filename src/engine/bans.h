// Who is denied too often is shut out: what happens after a denial under a rule that bans.
//
// All of it is counted by ordinary limits in the same store, each under a scope of its own: a log
// of denials, a bucket of one unit that takes as long as the ban to come back, and a bucket that
// counts how often a key was banned lately.
#pragma once

#include <weir/time.h>

#include "engine/call.h"
#include "engine/policy_version.h"
#include "store/store.h"

namespace weir {

// Counts the denial. How long the ban lasts that it leads to; zero if it leads to none.
Duration CountDenial(const PolicyVersion& version, const Call::Denial& denial, Store& store,
                     Now now) noexcept;

}  // namespace weir
