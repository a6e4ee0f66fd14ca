// Everything an embedding program needs.
#pragma once

#include <weir/clock.h>
#include <weir/decision.h>
#include <weir/limit.h>
#include <weir/limiter.h>
#include <weir/result.h>
#include <weir/time.h>
