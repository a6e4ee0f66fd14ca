// What was learnt from logs: how clients behave, who is unlike the others, which limits would fit
// and what they would have done. Everything that is shown, in whatever form, is in here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weir/time.h>

#include "lab/calibrate/outliers.h"
#include "lab/calibrate/period.h"
#include "lab/log/log_reader.h"

namespace weir::lab {

struct CalibrationSettings {
  double quantile = 0.999;                      // This part of the clients shall never be denied.
  double margin = 1.5;                          // A limit is so many times what they need.
  Duration horizon = std::chrono::seconds(60);  // Within which the lines were sorted.
};

// Quantiles of the peaks of all clients that were not set apart.
struct PeakQuantiles {
  std::uint32_t p50 = 0;
  std::uint32_t p90 = 0;
  std::uint32_t p99 = 0;
  std::uint32_t p999 = 0;
  std::uint32_t largest = 0;
};

// How clients behave over one length of time.
struct Behaviour {
  std::size_t period = 0;  // Of kAllPeriods.
  bool twice = true;       // The log lasts for at least two of them.
  PeakQuantiles normal{};
  std::uint32_t at_quantile = 0;     // What so many of them stayed within,
  bool is_largest = false;           // which is all of them, as they are few;
  std::uint32_t with_everybody = 0;  // and with those who were set apart.
  std::uint32_t largest_of_all = 0;
  std::int64_t limit = 0;                 // Proposed.
  std::int64_t limit_with_everybody = 0;  // If nobody is an abuser.
  Gap gap{};
  std::string in_policy{};  // The rule that has it, or
  std::string why_not{};    // why none does.
};

// A client that was set apart.
struct Abuser {
  std::string name{};
  std::uint64_t requests = 0;
  double share = 0;  // Of all requests.
  std::array<std::uint32_t, kPeriods> peaks{};
  WallTime first{};
  WallTime last{};
  std::uint64_t first_line = 0;
  std::uint32_t first_file = 0;
  std::size_t why = 0;  // The period in which it is furthest from the others,
  double times = 0;     // by so many times the largest of them.
  std::uint64_t denied = 0;
};

// What a rule would have denied.
struct Denials {
  std::uint64_t normal_requests = 0;
  std::uint64_t normal_clients = 0;
  std::uint64_t abuser_requests = 0;
  std::uint64_t abusers = 0;
};

struct ProposedRule {
  std::string name{};
  std::size_t period = 0;
  std::int64_t count = 0;  // So many in the period,
  std::int64_t burst = 0;  // so many at once; 0: as many.
  std::uint32_t peak_at_quantile = 0;
  std::uint32_t burst_at_quantile = 0;
  bool fixed_window = false;
  std::string why{};
  Denials denials{};

  std::string limit() const;  // 180/min burst 40
};

// Requests over time, in equal steps.
struct RequestCurve {
  WallTime from{};
  Duration step{0};
  std::vector<double> normal{};
  std::vector<double> abusers{};
  std::vector<double> denied{};
};

// The share of clients whose peak is at least so high.
struct PeakCurve {
  std::size_t period = 0;
  std::vector<double> share{};  // One for each of Calibration::curve_x.
};

struct Calibration {
  CalibrationSettings settings{};
  std::string key{};
  // Columns of the log that the key needed, as what they were read.
  std::vector<std::pair<std::string, std::string>> key_columns{};

  std::vector<LogCounts> logs{};
  std::uint64_t requests = 0;  // Counted.
  std::uint64_t without_key = 0;
  bool whole_seconds = false;
  bool has_costs = false;
  WallTime first{};
  WallTime last{};
  std::uint64_t busiest_second = 0;

  std::uint64_t clients = 0;
  std::uint64_t abuser_count = 0;
  std::uint64_t abuser_requests = 0;
  std::vector<Abuser> abusers{};  // Those with the most requests, the most first.

  std::vector<Behaviour> behaviour{};
  std::vector<std::size_t> periods_not_seen{};
  std::vector<ProposedRule> rules{};
  Denials denials{};  // By any of the rules.
  // The values of the part of the key that clients choose, which the rules are for, and how many
  // requests had another.
  std::string chosen_part{};
  std::vector<std::string> chosen_values{};
  std::uint64_t chosen_requests = 0;
  std::uint64_t chosen_left_out = 0;

  std::vector<double> curve_x{};
  std::vector<PeakCurve> curves{};
  RequestCurve timeline{};
  std::size_t memory_bytes = 0;    // For all clients, at the most.
  bool changed_meanwhile = false;  // The log was another when it was read again.
  std::string policy{};            // YAML.

  // A log was cut short, or changed meanwhile.
  bool is_partial() const noexcept;
};

}  // namespace weir::lab
