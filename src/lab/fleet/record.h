// Everything that was asked and answered in one run, and what went wrong meanwhile. Plain data: who
// judges a run needs nothing else, and a test can write any story.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weir/decision.h>
#include <weir/limit.h>
#include <weir/time.h>

#include "lab/fleet/scenario.h"

namespace weir::lab {

// What the store made of a request.
enum class Fate : std::uint8_t {
  kNotAsked,  // Nothing had to be counted, or the state is in the node's own memory.
  kDecided,
  kUnknown,  // The time ran out: it may have taken effect, then or later.
  kFailed,   // Nothing was changed.
};

// What one rule had to say about a request.
struct Use {
  int track = 0;  // Which of Record::tracks.
  int limit = 0;  // Which of Record::limits.
  std::int64_t cost = 1;
  bool is_shadow = false;
  FailureMode mode = FailureMode::kStatic;
  // Out.
  bool allowed = false;
  Reason reason = Reason::kNoRule;
  Source source = Source::kMemory;
  Duration delay{0};
};

struct Asked {
  int node = 0;
  int client = 0;   // Which of Record::clients.
  int version = 0;  // Of the policy that was in force there.
  Duration at{0};   // When the node took it up.
  Duration answered{-1};
  int answers = 0;
  bool is_lost = false;  // The node ended before it could answer.
  bool breaker_was_open = false;
  bool is_split = false;  // Its keys live in several places.
  bool allowed = false;
  Reason reason = Reason::kNoRule;
  Source source = Source::kMemory;
  Fate fate = Fate::kNotAsked;
  std::string error{};     // What the store failed with.
  WallTime decided_at{};   // By the store's clock.
  std::string mixed_up{};  // Not decided under one whole policy: what was seen.
  int fleet_size = 0;      // What its node took the fleet for, if it decided by its share.
  std::vector<Use> uses{};
  // A place under a concurrency limit: when it was given back, and when that was known.
  Duration released = Duration::max();
  Duration known_released = Duration::max();
};

// A count of its own: a rule and whom it counts.
struct Track {
  std::string rule;
  std::string key;
};

// A limit as some version of the policy has it.
struct LimitNote {
  std::string rule;
  int version = 0;
  Limit limit;
};

struct FaultNote {
  std::string name;
  Duration begins{0};
  Duration ends{0};
  std::optional<int> node{};    // Of a node, or
  std::optional<int> server{};  // of a server; of neither: of all.
  bool forgets = false;         // Servers, or the node that ended.
  bool moves_clock = false;
  bool moves_clock_back = false;
  bool stops = false;  // The node stands still.
  bool reloads = false;
  bool is_harmless = false;
  Duration slows_by{0};  // If the scenario says by how much.
};

// What rules decided, by the counters of an engine: rule and outcome.
using OutcomeCounts = std::map<std::pair<std::string, std::string>, std::uint64_t>;

struct NodeNote {
  Duration wall_offset{0};  // How far its calendar was ahead when all began.
  int drift_ppm = 0;
  OutcomeCounts counted{};  // By its engines, also by those before it was restarted.
  Duration degraded{0};     // The longest time at a stretch.
  bool is_degraded_at_end = false;
  int fleet_size_at_end = 1;
};

// What is left in the store, or in a node, when all is over.
struct LedgerNote {
  int track = 0;
  int limit = 0;
  int node = -1;  // Of whose memory; -1: the shared store.
  Duration at{0};
  std::optional<std::int64_t> used{};  // None: nobody answered.
};

// How often something was looked at, and what was beyond its bounds.
struct Watch {
  std::uint64_t looks = 0;
  std::vector<std::string> excesses{};
};

// One moment, for those who draw.
struct Sample {
  Duration at{0};
  int degraded_nodes = 0;
  std::uint64_t in_flight = 0;
};

// A time in which not all nodes had the same version of the policy.
struct Disagreement {
  Duration begins{0};
  Duration ends = Duration::max();
};

struct ClientNote {
  std::string group;
  std::string name;
};

struct Record {
  std::string scenario;
  std::uint64_t seed = 0;
  StoreLayout layout = StoreLayout::kMemory;
  int servers = 0;
  int nodes = 1;
  int fleet_size = 0;  // 0: counted.
  Duration timeout{0};
  int max_in_flight = 1024;
  Duration server_offset{0};
  Duration healed{0};  // When the last fault was over.
  Duration asked_until{0};
  Duration ended{0};

  std::vector<std::string> rules{};  // Of all versions, in the order of the first.
  std::vector<Track> tracks{};
  std::vector<LimitNote> limits{};
  std::vector<ClientNote> clients{};
  std::vector<FaultNote> faults{};
  std::vector<NodeNote> node_notes{};
  std::vector<Disagreement> disagreements{};
  std::deque<Asked> asked{};
  std::uint64_t unreached = 0;  // Sent to a node that was down.
  std::vector<LedgerNote> ledger{};
  Watch caps{};
  Watch reconnects{};
  std::vector<Sample> samples{};
  std::vector<std::string> notices{};  // What nodes said to people.
  std::uint64_t fingerprint = 0;
  std::uint64_t events = 0;

  bool is_shared() const noexcept { return layout != StoreLayout::kMemory; }
};

}  // namespace weir::lab
