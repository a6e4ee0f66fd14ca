// The same requests through every algorithm, side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <weir/limit.h>

#include "lab/compare/contender.h"
#include "lab/compare/passage.h"
#include "lab/compare/traffic.h"
#include "lab/compare/trial.h"
#include "lab/progress.h"
#include "lab/report.h"

namespace weir::lab {

struct Rival {
  Contender contender;
  Trial trial;                     // Without what passed: that is in
  std::vector<double> passed{};    // each part of the timeline, and at most
  std::vector<double> trailing{};  // in the last period at any time of it.
  double bytes_per_key = 0;
};

struct Comparison {
  Limit limit;      // As a token bucket.
  Traffic traffic;  // Without its arrivals; those are in
  std::int64_t requests = 0;
  std::int64_t cost = 0;
  PlotBins timeline{};
  std::vector<double> came{};  // as in Rival.
  std::vector<double> came_trailing{};
  std::vector<Rival> rivals{};
  std::vector<LeftOut> left_out{};
};

// `limit` is a token bucket. Progress counts each request once for every algorithm.
Comparison Compare(const Limit& limit, Traffic traffic, Progress* progress = nullptr);

Report ReportOf(const Comparison& comparison);
// What went ahead in the last period, by each algorithm: for documents.
Panels PictureOf(const Comparison& comparison);
// One object, for scripts.
std::string JsonOf(const Comparison& comparison);

}  // namespace weir::lab
