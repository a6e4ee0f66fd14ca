// Concurrency: how many may be at work at once. An admission is a lease, given back by kSettle,
// whatever the work turned out to cost; the lease of a holder that died ends by itself.
//
//   admits iff   live leases + cost <= n
//   promise      at most n live leases at any instant
//   fresh        no lease
//
// Leases last equally long, so they end in the order in which they were taken, and the same log
// serves as for the sliding log.
#pragma once

#include "algorithm/sliding_log.h"

namespace weir {

LogStep StepConcurrency(const Limit& limit, EventLog& log, const StepRequest& request,
                        const Instant& at, Effect effect) noexcept;

}  // namespace weir
