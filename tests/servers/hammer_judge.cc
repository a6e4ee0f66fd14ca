// Puts the logs of all processes that hammered one store in the order in which the server decided,
// and judges them by the promise and by the oracle.
//
//   hammer_judge LIMIT LOG...   prints "admitted A of B that the oracle would have admitted"
//
// Ends with 1 if the promise was broken in any interval, or if less than 0.99 of B was admitted.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hammer_plan.h"
#include "oracle.h"
#include "promise_checker.h"

namespace weir::on_servers {
namespace {

using conformance::TraceAction;
using conformance::TraceVerb;

struct Entry {
  Event event;
  int process = 0;
};

std::optional<std::vector<Entry>> ReadLogs(int count, char** paths) {
  std::vector<Entry> entries;
  for (int process = 0; process < count; ++process) {
    std::FILE* const file = std::fopen(paths[process], "rb");
    if (file == nullptr) return std::nullopt;
    Event event;
    while (std::fread(&event, sizeof(event), 1, file) == 1) entries.push_back({event, process});
    std::fclose(file);
  }
  // What was decided within one microsecond may have been in any order; what was given back in it
  // goes first, what was admitted before what was not, and of a queue who waits less.
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    if (a.event.decided_at != b.event.decided_at) return a.event.decided_at < b.event.decided_at;
    if (a.event.released != b.event.released) return a.event.released > b.event.released;
    if (a.event.allowed != b.event.allowed) return a.event.allowed > b.event.allowed;
    if (a.event.delay != b.event.delay) return a.event.delay < b.event.delay;
    return std::pair(a.process, a.event.number) < std::pair(b.process, b.event.number);
  });
  return entries;
}

Now AsOf(const Event& event) {
  const Duration since(event.decided_at);
  return {SteadyTime(since), WallTime(since)};
}

class KeyJudge {
 public:
  KeyJudge(const LimitSpec& spec, Now start)
      : concurrency_(spec.algorithm == Algorithm::kConcurrency),
        oracle_(conformance::MakeOracle(spec, start, 1)),
        promise_(spec, start) {}

  void Add(const Entry& entry) {
    const Event& event = entry.event;
    const int number = (entry.process << 24) | event.number;
    if (event.failed) {
      ++failed_;
      return;
    }
    TraceAction action{.number = number, .cost = event.cost};
    if (event.released) {
      action = {.number = -1, .verb = TraceVerb::kSettle, .cost = 0, .of = number};
      promise_.Add(action, AsOf(event), {});
      // The oracle may have admitted others than the server did: it is asked about the same order,
      // in which it gives back only what it gave.
      if (std::ranges::find(given_, number) != given_.end()) oracle_->Do(action, AsOf(event));
      return;
    }
    Decision decision;
    decision.allowed = event.allowed;
    decision.delay = Duration(event.delay);
    promise_.Add(action, AsOf(event), decision);
    if (event.allowed) admitted_ += event.cost;
    if (oracle_->Do(action, AsOf(event)).allowed) {
      would_ += event.cost;
      if (concurrency_) given_.push_back(number);
    }
  }

  std::int64_t admitted() const { return admitted_; }
  std::int64_t would() const { return would_; }
  int failed() const { return failed_; }
  std::optional<std::string> Broken() const { return promise_.Broken(); }

 private:
  const bool concurrency_;
  std::unique_ptr<conformance::Oracle> oracle_;
  conformance::PromiseChecker promise_;
  std::vector<int> given_;
  std::int64_t admitted_ = 0;
  std::int64_t would_ = 0;
  int failed_ = 0;
};

int Main(int count, char** words) {
  const auto spec = count > 2 ? PlannedLimit(words[1]) : std::nullopt;
  const auto entries = spec ? ReadLogs(count - 2, words + 2) : std::nullopt;
  if (!entries || entries->empty()) {
    std::fprintf(stderr, "usage: hammer_judge LIMIT LOG...\n");
    return 2;
  }
  bool good = true;
  for (int key = 0; key < kKeys; ++key) {
    KeyJudge judge(*spec, AsOf(entries->front().event));
    for (const Entry& entry : *entries) {
      if (entry.event.key == key) judge.Add(entry);
    }
    const double share = static_cast<double>(judge.admitted()) /
                         static_cast<double>(std::max<std::int64_t>(1, judge.would()));
    std::printf("%s key %d: admitted %lld of %lld that the oracle would have admitted (%.4f)\n",
                words[1], key, static_cast<long long>(judge.admitted()),
                static_cast<long long>(judge.would()), share);
    if (judge.failed() > 0) std::printf("%d requests failed\n", judge.failed());
    const auto broken = judge.Broken();
    if (broken) std::printf("above the promise: %s\n", broken->c_str());
    good = good && !broken && share >= 0.99 && judge.admitted() > 0 && judge.failed() == 0;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace weir::on_servers

int main(int count, char** words) { return weir::on_servers::Main(count, words); }
