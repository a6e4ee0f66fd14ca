// A judge who finds nothing is worth something only if he finds what is there: builds with known
// mistakes, each of which must be found in few worlds, and none where there is none.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "lab/fleet/campaign.h"
#include "lab/fleet/scenario_reader.h"

namespace weir::lab {
namespace {

// More than any of them takes.
constexpr std::uint64_t kMostSeeds = 1'000;

// One of the examples, or one that is written out.
Scenario ScenarioOf(const std::string& name, const std::string& text) {
  const std::string folder = std::string(WEIR_SOURCE_DIR) + "/examples/scenarios";
  ScenarioReport report =
      text.empty() ? LoadScenario(folder + "/" + name + ".yaml") : ReadScenario(text, name, folder);
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  return std::move(report.scenario).value();
}

struct Edit {
  const char* right;
  const char* wrong;
};

struct Planted {
  const char* name;
  const char* scenario;
  const char* breaks;         // The invariant that tells.
  const char* text = "";      // Of the scenario, if it is no example.
  std::vector<Edit> edits{};  // Of the script that servers run.
  MakeStore mistake{};        // Between guard and client.
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

// Never denies, or denies as soon as half is gone: of buckets.
const std::vector<Edit> kNeverDenies = {{"  if l <= slack then", "  if true then"},
                                        {"if l > a[p + 1] then ok = false end", ""}};
const std::vector<Edit> kDeniesTooEarly = {
    {"  if l <= slack then", "  if l < slack / 2 then"},
    {"if l > a[p + 1] then ok = false end", "if l > a[p + 1] / 2 then ok = false end"}};
// After nine seconds everybody is denied.
const std::vector<Edit> kLocksOut = {
    {"    if l < 0 then\n      l = 0\n    elseif l > 252288000e9 then",
     "    if time[1] % 100 > 9 then\n      l = slack + 1\n    elseif l < 0 then\n      l = 0\n"
     "    elseif l > 252288000e9 then"}};
const std::vector<Edit> kWindowsAreNotClamped = {
    {"damaged = above(ds, dn, length_s, length_n)", "damaged = false"},
    {"damaged = above(ds, dn, ws, wn)", "damaged = false"},
    {"damaged = above(ds, dn, a[j + 7], a[j + 8])", "damaged = false"},
    {"if log.last - now > log.down then", "if false then"}};

// A server's clock is set ahead by an hour, and back.
#define WINDOWS_AND_A_CLOCK(limit)                                               \
  "duration: 20s\nstore: { layout: redis }\npolicy:\n  max_wait: 1s\n  rules:\n" \
  "    - { name: w, key: user, " limit                                           \
  " }\nclients:\n  - { name: eager, count: 2, rate: 30/s }\nfaults:\n"           \
  "  - { at: 4s, for: 2s, what: clock ahead, by: 1h, server: 1 }\n"

// One that happens when all has been seen.
constexpr char kClockAtTheEnd[] = R"(
duration: 20s
store: { layout: redis }
policy:
  rules:
    - { name: per-user, key: user, limit: 100/s burst 200 }
    - { name: all, key: global, limit: 100/s burst 1500 }
clients:
  - { name: a, count: 5, rate: 40/s }
faults:
  - { at: 19s, for: 500ms, what: clock ahead, by: 1ms }
)";

// The policy is read again, and nothing is new.
constexpr char kReloadOfTheSame[] = R"(
duration: 20s
store: { layout: redis }
nodes: { count: 3 }
policy: { rules: [{ name: per-user, key: user, limit: 20/s burst 40 }] }
clients:
  - { name: busy, rate: 60/s, arrivals: steady, user: busy }
  - { name: people, count: 10, rate: 3/s }
faults:
  - at: 1s
    what: policy reload
    node: 2
    policy: { rules: [{ name: per-user, key: user, limit: 20/s burst 40 }] }
)";

// Another limit comes, and stays.
constexpr char kReloadOfAnother[] = R"(
duration: 20s
store: { layout: redis }
nodes: { count: 3 }
policy: { max_wait: 1s, rules: [{ name: per-user, key: user, limit: 10/s burst 20 }] }
clients: [{ name: busy, rate: 60/s, arrivals: steady, user: busy }]
faults:
  - at: 4s
    what: policy reload
    policy: { max_wait: 1s, rules: [{ name: per-user, key: user, limit: 20/s burst 40 }] }
)";

// One call of which nobody knows, and a limit that is soon over it.
constexpr char kOneIsUnknown[] = R"(
duration: 20s
store: { layout: redis }
nodes: { count: 2 }
policy: { rules: [{ name: per-user, key: user, limit: 10/s burst 10 }] }
clients: [{ name: busy, rate: 60/s, arrivals: steady, user: busy }]
faults: [{ at: 2s, for: 300ms, what: replies lost, server: 1 }]
)";

// Groups with keys on several servers, over a long time.
constexpr char kSplitOverShards[] = R"(
duration: 20s
store: { layout: shards, servers: 3 }
policy:
  rules:
    - { name: per-user, key: user, limit: 100/s burst 200 }
    - { name: all, key: global, limit: 100/s burst 1500 }
clients: [{ name: a, count: 5, rate: 40/s }]
)";

// Asks again when the time ran out, though the first call may have taken effect.
class Repeater final : public Store, private Completion {
 public:
  explicit Repeater(Store& behind) : behind_(behind) {}

  std::uint64_t Hash(std::string_view key) const noexcept override { return behind_.Hash(key); }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override {
    for (Group& group : groups) asked_[&group] = {&completion, now, false};
    behind_.Submit(groups, now, *this);
  }

 private:
  struct Asked {
    Completion* completion = nullptr;
    Now now{};
    bool was_repeated = false;
  };
  void OnDecided(Group& group) noexcept override {
    Asked& asked = asked_.at(&group);
    const bool ran_out = group.error && group.error->code == ErrorCode::kDeadline;
    if (ran_out && !asked.was_repeated) {
      asked.was_repeated = true;
      group.error.reset();
      return behind_.Submit({&group, 1}, asked.now, *this);
    }
    Completion& completion = *asked.completion;
    asked_.erase(&group);
    completion.OnDecided(group);
  }

  Store& behind_;
  std::unordered_map<Group*, Asked> asked_;
};

// Loses one answer, which is told when all is over.
class Forgetter final : public Store, private Completion {
 public:
  explicit Forgetter(Store& behind) : behind_(behind) {}
  Forgetter(const Forgetter&) = delete;
  Forgetter& operator=(const Forgetter&) = delete;
  ~Forgetter() override {
    if (forgotten_ != nullptr) asked_.at(forgotten_)->OnDecided(*forgotten_);
  }

  std::uint64_t Hash(std::string_view key) const noexcept override { return behind_.Hash(key); }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override {
    for (Group& group : groups) asked_[&group] = &completion;
    behind_.Submit(groups, now, *this);
  }

 private:
  void OnDecided(Group& group) noexcept override {
    constexpr int kWhich = 20;
    if (++answers_ == kWhich) {
      forgotten_ = &group;
      return;
    }
    Completion& completion = *asked_.at(&group);
    asked_.erase(&group);
    completion.OnDecided(group);
  }

  Store& behind_;
  std::unordered_map<Group*, Completion*> asked_;
  int answers_ = 0;
  Group* forgotten_ = nullptr;
};

// Takes a call that failed for one that was let through.
class Believer final : public Store, private Completion {
 public:
  explicit Believer(Store& behind) : behind_(behind) {}

  std::uint64_t Hash(std::string_view key) const noexcept override { return behind_.Hash(key); }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override {
    for (Group& group : groups) asked_[&group] = &completion;
    behind_.Submit(groups, now, *this);
  }

 private:
  void OnDecided(Group& group) noexcept override {
    if (group.error && !group.charges.empty()) {
      group.error.reset();
      for (std::size_t i = 0; i < group.charges.size(); ++i) {
        group.decisions[i] = {.allowed = true,
                              .reason = Reason::kOk,
                              .source = Source::kStore,
                              .rule = group.charges[i].rule,
                              .limit = group.charges[i].limit->capacity(),
                              .cost = group.charges[i].cost};
      }
      group.decision = Combine(group.charges, group.decisions);
    }
    Completion& completion = *asked_.at(&group);
    asked_.erase(&group);
    completion.OnDecided(group);
  }

  Store& behind_;
  std::unordered_map<Group*, Completion*> asked_;
};

template <typename Mistaken>
std::unique_ptr<Store> Make(Store& behind, Loop& /*loop*/) {
  return std::make_unique<Mistaken>(behind);
}

const std::vector<Planted>& AllPlanted() {
  static const std::vector<Planted> planted = {
      {.name = "NoClampOnAClockSteppingBack",
       .scenario = "clocks",
       .breaks = "I2",
       .edits = {{"elseif l > furthest then", "elseif false then"},
                 {"if l > a[p + 2] then", "if false then"},
                 {"damaged = above(ls, ln, a[j + 5], a[j + 6])", "damaged = false"}}},
      {.name = "TimeToLiveTooShort",
       .scenario = "anything",
       .breaks = "I1",
       .edits = {{"format('%d', (l + 1999999) / 1e6)", "format('%d', (l / 2 + 1999999) / 1e6)"},
                 {"local ms = s * 1000 + floor((n + 1999999) / 1e6)",
                  "local ms = floor((s * 1000 + (n + 1999999) / 1e6) / 2)"}}},
      {.name = "RepeatsWhatTimedOut",
       .scenario = "replies-lost",
       .breaks = "I8",
       .mistake = Make<Repeater>},
      {.name = "KeepsAChargeAfterAnothersDenial",
       .scenario = "anything",
       .breaks = "I8",
       .edits = {{"local takes = ok and passed[c]", "local takes = passed[c]"},
                 {"    if ok then\n      mask = mask + weight\n      for j",
                  "    if ok then mask = mask + weight end\n    if true then\n      for j"},
                 {"if add ~= 0 then\n          local k, p",
                  "if add ~= 0 and a[3 + a[j]] <= a[a[j + 1] + 1] then\n          local k, p"}}},
      {.name = "LetsOneMoreThroughThanTheBurst",
       .scenario = "anything",
       .breaks = "I1",
       .edits = {{"if l <= slack then", "if l <= slack + add then"},
                 {"if l > a[p + 1] then ok = false end",
                  "if l > a[p + 1] + a[p] then ok = false end"}}},
      {.name = "DeniesOneTooEarly",
       .scenario = "anything",
       .breaks = "I2",
       .edits = {{"if l <= slack then", "if l <= slack - add then"},
                 {"if l > a[p + 1] then ok = false end",
                  "if l > a[p + 1] - a[p] then ok = false end"}}},
      {.name = "ForgetsTheFormerWindow",
       .scenario = "anything",
       .breaks = "I1",
       .edits = {{"if previous == 0 then return 0 end", "if true then return 0 end"}}},
      {.name = "CountsASubWindowTooFew",
       .scenario = "anything",
       .breaks = "I1",
       .edits = {{"for i = 1, counted do used = used + counts[i] end",
                  "for i = 1, counted - 1 do used = used + counts[i] end"}}},
      {.name = "GivesALeaseBackTwice",
       .scenario = "anything",
       .breaks = "I1",
       .edits = {{"give_back(k, log, reserved - cost, a[j + 3]",
                  "give_back(k, log, 2 * (reserved - cost)) give_back(k, log, 0, a[j + 3]"}}},
      {.name = "ForgetsAnAnswer",
       .scenario = "redis-healthy",
       .breaks = "I4",
       .mistake = Make<Forgetter>},
      {.name = "BelievesACallThatFailed",
       .scenario = "outage-closed",
       .breaks = "I1",
       .mistake = Make<Believer>},
      {.name = "NoClampOfAFixedWindow",
       .scenario = "a fixed window and a clock",
       .breaks = "I2",
       .text = WINDOWS_AND_A_CLOCK("limit: 20/2s, algorithm: fixed_window"),
       .edits = kWindowsAreNotClamped},
      {.name = "NoClampOfASlidingWindow",
       .scenario = "a sliding window and a clock",
       .breaks = "I2",
       .text = WINDOWS_AND_A_CLOCK("limit: 20/2s, algorithm: sliding_window"),
       .edits = kWindowsAreNotClamped},
      {.name = "NoClampOfAStrictWindow",
       .scenario = "a strict window and a clock",
       .breaks = "I2",
       .text = WINDOWS_AND_A_CLOCK("limit: 20/2s, algorithm: sliding_window, strict: true"),
       .edits = kWindowsAreNotClamped},
      {.name = "NoClampOfALog",
       .scenario = "a log and a clock",
       .breaks = "I2",
       .text = WINDOWS_AND_A_CLOCK("limit: 20/2s, algorithm: sliding_log"),
       .edits = kWindowsAreNotClamped},
      {.name = "NoClampOfLeases",
       .scenario = "leases and a clock",
       .breaks = "I2",
       .text = WINDOWS_AND_A_CLOCK("limit: 5 concurrent lease 2s"),
       .edits = kWindowsAreNotClamped},
      {.name = "AStepBackMakesABucketFresh",
       .scenario = "clocks",
       .breaks = "I1",
       .edits = {{"l, changed = furthest, true", "l, changed = 0, true"},
                 {"        l = a[p + 2]\n", "        l = 0\n"},
                 {"if damaged then ls, ln = a[j + 5], a[j + 6] end",
                  "if damaged then ls, ln = 0, 0 end"}}},
      {.name = "DeniesTooEarlyBeforeAClockIsMoved",
       .scenario = "a clock at the end",
       .breaks = "I2",
       .text = kClockAtTheEnd,
       .edits = kDeniesTooEarly},
      {.name = "NeverDeniesAndAClockIsMoved",
       .scenario = "a clock at the end",
       .breaks = "I1",
       .text = kClockAtTheEnd,
       .edits = kNeverDenies},
      {.name = "NeverDeniesGroupsOnSeveralServers",
       .scenario = "split over shards",
       .breaks = "I1",
       .text = kSplitOverShards,
       .edits = kNeverDenies},
      {.name = "LocksOutAfterAReloadOfTheSame",
       .scenario = "a reload of the same",
       .breaks = "I2",
       .text = kReloadOfTheSame,
       .edits = kLocksOut},
      {.name = "LocksOutAfterAnotherLimitCame",
       .scenario = "a reload of another limit",
       .breaks = "I2",
       .text = kReloadOfAnother,
       .edits = kLocksOut},
      {.name = "LocksOutAfterOneIsUnknown",
       .scenario = "one is unknown",
       .breaks = "I2",
       .text = kOneIsUnknown,
       .edits = kLocksOut},
  };
  return planted;
}

class PlantedMistake : public testing::TestWithParam<Planted> {
 protected:
  CampaignResult Run(std::uint64_t seeds, bool is_planted) {
    CampaignOptions options{.seeds = seeds, .threads = 1};
    if (is_planted) {
      options.stops_at_first = true;
      options.fleet.mistake = GetParam().mistake;
      options.lua.edit = [this](std::string text) {
        // Servers run other scripts as well.
        for (const Edit& edit : GetParam().edits) {
          const std::string_view right = edit.right;
          for (std::size_t at = text.find(right); at != std::string::npos;
               at = text.find(right, at + 1)) {
            text.replace(at, right.size(), edit.wrong);
            made_.insert(edit.right);
          }
        }
        return text;
      };
    }
    return RunCampaign(ScenarioOf(GetParam().scenario, GetParam().text), options);
  }

  std::set<std::string> made_;  // Of the edits.
};

TEST_P(PlantedMistake, IsFoundWithinAThousandSeeds) {
  const CampaignResult result = Run(kMostSeeds, true);
  // Where the script has changed the mistake has to be made in another way.
  for (const Edit& edit : GetParam().edits) {
    EXPECT_TRUE(made_.contains(edit.right)) << "not in the script: " << edit.right;
  }
  ASSERT_FALSE(result.broken.empty());
  const BrokenSeed& found = result.broken.front();
  const auto telling = std::ranges::find_if(
      found.what, [](const std::string& it) { return it.starts_with(GetParam().breaks); });
  ASSERT_NE(telling, found.what.end()) << testing::PrintToString(found.what);
  std::printf("%s: found by %s, %lu of %lu seeds: %s\n", GetParam().name, GetParam().scenario,
              static_cast<unsigned long>(result.runs), static_cast<unsigned long>(kMostSeeds),
              telling->c_str());
  // The same worlds without it are clean.
  const CampaignResult clean = Run(result.runs, false);
  for (const BrokenSeed& broken : clean.broken) {
    ADD_FAILURE() << "seed " << broken.seed << ": " << broken.what.front();
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlantedMistake, testing::ValuesIn(AllPlanted()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace weir::lab
