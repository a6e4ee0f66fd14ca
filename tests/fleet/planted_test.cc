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

Scenario ScenarioNamed(const std::string& name) {
  const std::string path = std::string(WEIR_SOURCE_DIR) + "/examples/scenarios/" + name + ".yaml";
  ScenarioReport report = LoadScenario(path);
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
  std::vector<Edit> edits{};  // Of the script that servers run.
  MakeStore mistake{};        // Between guard and client.
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

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
    return RunCampaign(ScenarioNamed(GetParam().scenario), options);
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
  std::printf("%s: found by %s.yaml, %lu of %lu seeds: %s\n", GetParam().name, GetParam().scenario,
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
