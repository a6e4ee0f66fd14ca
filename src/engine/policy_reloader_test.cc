#include "engine/policy_reloader.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "engine/policy_files_under_test.h"

namespace weir {
namespace {

using Outcome = ReloadEvent::Outcome;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// An engine under the policy of a file, and what reads the file again.
class Reloading {
 public:
  explicit Reloading(std::string_view text, bool force = false, std::string_view overrides = "")
      : folder({{"weir.yaml", text}, {"customers.csv", overrides}}),
        under_test(*Policy::Load(folder.File("weir.yaml")).policy),
        reloader(under_test.engine, folder.File("weir.yaml"), force) {}

  PolicyFolder folder;
  EngineUnderTest under_test;
  PolicyReloader reloader;

  ReloadEvent Reload(std::string_view text) {
    folder.Write("weir.yaml", text);
    return reloader.Reload();
  }
  const PolicySpec& in_force() {
    policy_ = under_test.engine.policy();
    return policy_->spec();
  }

 private:
  std::optional<Policy> policy_;
};

std::string ManyRules(int count) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < count; ++i) {
    yaml += "  - { name: r" + std::to_string(i) + ", key: user, limit: 10/min }\n";
  }
  return yaml;
}

TEST(PolicyReloader, RefusesAStoreThatCannotBeUsedUntilItCan) {
  Reloading reloading(RuleNamed("r"));
  const std::string store = "store: redis://:file:secret@127.0.0.1:1\n";
  const ReloadEvent refused = reloading.Reload(store + RuleNamed("r", "20/min"));
  EXPECT_EQ(refused.outcome, Outcome::kBroken);
  EXPECT_THAT(refused.ToString(), HasSubstr("cannot be taken up"));
  EXPECT_THAT(refused.ToString(), HasSubstr("secret"));
  EXPECT_EQ(reloading.in_force().rules[0].limit, "10/min");
  EXPECT_EQ(reloading.reloader.ReloadIfChanged(), std::nullopt) << "said before";
  reloading.folder.Write("secret", "s3cret");
  const std::optional<ReloadEvent> applied = reloading.reloader.ReloadIfChanged();
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->outcome, Outcome::kApplied);
  EXPECT_THAT(applied->ToString(), HasSubstr("another store"));
  EXPECT_TRUE(reloading.under_test.engine.Health().shared);
  // A password that is replaced is noticed as well.
  reloading.folder.Write("secret", "0ther");
  const std::optional<ReloadEvent> replaced = reloading.reloader.ReloadIfChanged();
  ASSERT_TRUE(replaced);
  EXPECT_EQ(replaced->outcome, Outcome::kApplied);
  EXPECT_FALSE(replaced->change.store_changed);
}

TEST(PolicyReloader, TakesAChangedFile) {
  Reloading reloading(RuleNamed("r"));
  const ReloadEvent event = reloading.Reload(RuleNamed("r", "20/min"));
  EXPECT_EQ(event.outcome, Outcome::kApplied);
  EXPECT_THAT(event.change.limits_changed, ElementsAre("r"));
  EXPECT_THAT(event.ToString(), HasSubstr("version 2"));
  EXPECT_EQ(reloading.in_force().rules[0].limit, "20/min");
}

TEST(PolicyReloader, SaysWhenNothingHasChanged) {
  Reloading reloading(RuleNamed("r"));
  EXPECT_EQ(reloading.reloader.Reload().outcome, Outcome::kUnchanged);
  EXPECT_FALSE(reloading.reloader.ReloadIfChanged());
  EXPECT_EQ(reloading.under_test.engine.Stats().version, 1U);
}

TEST(PolicyReloader, TakesUpWhatChangedBeforeItWasMade) {
  Reloading reloading(RuleNamed("r"));
  reloading.folder.Write("weir.yaml", RuleNamed("r", "20/min"));
  PolicyReloader late(reloading.under_test.engine, reloading.folder.File("weir.yaml"), false);
  const std::optional<ReloadEvent> event = late.ReloadIfChanged();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->outcome, Outcome::kApplied);
  EXPECT_EQ(reloading.in_force().rules[0].limit, "20/min");
}

TEST(PolicyReloader, KeepsTheOldPolicyWhenTheFileIsBrokenAndSaysWhatIsWrong) {
  Reloading reloading(RuleNamed("r"));
  const ReloadEvent event = reloading.Reload(RuleNamed("r", "lots"));
  EXPECT_EQ(event.outcome, Outcome::kBroken);
  ASSERT_FALSE(event.problems.empty());
  EXPECT_THAT(event.ToString(), HasSubstr("weir.yaml:2:"));
  EXPECT_EQ(reloading.in_force().rules[0].limit, "10/min");
  EXPECT_EQ(reloading.under_test.engine.Stats().version, 1U);
}

TEST(PolicyReloader, ComplainsOfABrokenFileOnce) {
  Reloading reloading(RuleNamed("r"));
  reloading.folder.Write("weir.yaml", "rules: [");
  EXPECT_EQ(reloading.reloader.ReloadIfChanged()->outcome, Outcome::kBroken);
  EXPECT_FALSE(reloading.reloader.ReloadIfChanged());
  EXPECT_EQ(reloading.reloader.Reload().outcome, Outcome::kBroken);  // Whoever asks is told.
  reloading.folder.Write("weir.yaml", RuleNamed("r"));
  EXPECT_EQ(reloading.reloader.ReloadIfChanged()->outcome, Outcome::kUnchanged);
}

TEST(PolicyReloader, KeepsTheOldPolicyWhileTheFileIsGone) {
  Reloading reloading(RuleNamed("r"));
  reloading.folder.Remove("weir.yaml");
  const ReloadEvent event = reloading.reloader.Reload();
  EXPECT_EQ(event.outcome, Outcome::kBroken);
  EXPECT_THAT(event.ToString(), HasSubstr("No such file"));
  EXPECT_EQ(reloading.in_force().rules.size(), 1U);
  EXPECT_EQ(reloading.Reload(RuleNamed("s")).outcome, Outcome::kApplied);
}

TEST(PolicyReloader, KeepsTheOldPolicyWhenTheNewOneLooksLikeAnAccident) {
  Reloading reloading(ManyRules(20));
  EXPECT_NE(reloading.Reload("").outcome, Outcome::kApplied);
  EXPECT_NE(reloading.Reload("\n# nothing\n").outcome, Outcome::kApplied);
  const ReloadEvent none = reloading.Reload("rules: []\n");
  EXPECT_EQ(none.outcome, Outcome::kSuspicious);
  EXPECT_THAT(none.ToString(), HasSubstr("no rules any more"));
  const ReloadEvent fewer = reloading.Reload(RuleNamed("r0"));
  EXPECT_EQ(fewer.outcome, Outcome::kSuspicious);
  EXPECT_THAT(fewer.suspicions, Contains(HasSubstr("only 1")));
  std::string cut = ManyRules(20);
  cut.replace(cut.find("10/min"), 6, "10/day");
  const ReloadEvent tighter = reloading.Reload(cut);
  EXPECT_EQ(tighter.outcome, Outcome::kSuspicious);
  EXPECT_THAT(tighter.suspicions, ElementsAre(HasSubstr("\"r0\"")));
  EXPECT_EQ(reloading.in_force().rules.size(), 20U);
  EXPECT_EQ(reloading.under_test.engine.Stats().version, 1U);
}

TEST(PolicyReloader, TakesWhatLooksLikeAnAccidentIfItIsTold) {
  Reloading reloading(ManyRules(20), true);
  const ReloadEvent event = reloading.Reload("rules: []\n");
  EXPECT_EQ(event.outcome, Outcome::kApplied);
  EXPECT_FALSE(event.suspicions.empty());
  EXPECT_TRUE(reloading.in_force().rules.empty());
  EXPECT_EQ(reloading.Reload("rules: [").outcome, Outcome::kBroken);
}

TEST(PolicyReloader, TakesALimitThatIsCutToATenthOrRaisedAtWill) {
  Reloading reloading(RuleNamed("r", "100/min"));
  EXPECT_EQ(reloading.Reload(RuleNamed("r", "10/min")).outcome, Outcome::kApplied);
  EXPECT_EQ(reloading.Reload(RuleNamed("r", "1M/min")).outcome, Outcome::kApplied);
}

TEST(PolicyReloader, RefusesABombOfAliases) {
  Reloading reloading(RuleNamed("r"));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j == 0 ? "" : ", ") + before;
    bomb += "]\n";
  }
  EXPECT_EQ(reloading.Reload(bomb + RuleNamed("r")).outcome, Outcome::kBroken);
  EXPECT_EQ(reloading.in_force().rules.size(), 1U);
}

// --- Overrides ---

constexpr std::string_view kWithOverrides =
    "rules:\n  - { name: r, key: user, limit: 10/min, overrides: customers.csv }\n";

TEST(PolicyReloader, NoticesThatAFileOfOverridesHasChangedAlone) {
  Reloading reloading(kWithOverrides, false, "user,limit\nacme,50/min\n");
  EXPECT_EQ(reloading.under_test.Exhaust({.user = "acme"}), 50);
  EXPECT_FALSE(reloading.reloader.ReloadIfChanged());
  reloading.folder.Write("customers.csv", "user,limit\nacme,50/min\nbeta,70/min\n");
  const auto event = reloading.reloader.ReloadIfChanged();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->outcome, Outcome::kApplied);
  EXPECT_EQ(reloading.under_test.Exhaust({.user = "beta"}), 70);
  EXPECT_FALSE(reloading.under_test.Allows({.user = "acme"}));
  EXPECT_FALSE(reloading.reloader.ReloadIfChanged());
}

TEST(PolicyReloader, KeepsTheOldOverridesWhenTheirFileIsBrokenOrGone) {
  Reloading reloading(kWithOverrides, false, "user,limit\nacme,50/min\n");
  reloading.folder.Write("customers.csv", "user,limit\nacme\n");
  EXPECT_EQ(reloading.reloader.ReloadIfChanged()->outcome, Outcome::kBroken);
  reloading.folder.Remove("customers.csv");
  EXPECT_EQ(reloading.reloader.ReloadIfChanged()->outcome, Outcome::kBroken);
  EXPECT_EQ(reloading.under_test.Exhaust({.user = "acme"}), 50);
}

TEST(PolicyReloader, TakesAPolicyOnceAFileThatItNamesHasArrived) {
  Reloading reloading(RuleNamed("r"));
  reloading.folder.Write("weir.yaml", kWithOverrides);
  EXPECT_EQ(reloading.reloader.ReloadIfChanged()->outcome, Outcome::kBroken);
  EXPECT_FALSE(reloading.reloader.ReloadIfChanged());
  reloading.folder.Write("customers.csv", "user,limit\nacme,50/min\n");
  const auto event = reloading.reloader.ReloadIfChanged();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->outcome, Outcome::kApplied);
  EXPECT_EQ(reloading.under_test.Exhaust({.user = "acme"}), 50);
}

TEST(PolicyReloader, AppliesAPolicyThatNamesAnotherFileJustOnce) {
  Reloading reloading(RuleNamed("r"));
  reloading.folder.Write("customers.csv", "user,limit\nacme,50/min\n");
  reloading.folder.Write("weir.yaml", kWithOverrides);
  EXPECT_EQ(reloading.reloader.ReloadIfChanged()->outcome, Outcome::kApplied);
  EXPECT_THAT(reloading.reloader.files(), ElementsAre(reloading.folder.File("weir.yaml"),
                                                      reloading.folder.File("customers.csv")));
  EXPECT_FALSE(reloading.reloader.ReloadIfChanged());
  EXPECT_EQ(reloading.reloader.Reload().outcome, Outcome::kUnchanged);
  EXPECT_EQ(reloading.under_test.engine.Stats().version, 2U);
}

TEST(PolicyReloader, TakesOverridesThatAreMostlyGoneForAnAccident) {
  std::string rows = "user,limit\n";
  for (int i = 0; i < 20; ++i) rows += "u" + std::to_string(i) + ",50/min\n";
  Reloading reloading("rules: [{ name: r, key: user, limit: 10/min, overrides: customers.csv }]\n",
                      false, rows);
  reloading.folder.Write("customers.csv", rows.substr(0, rows.find("u2,")));
  const ReloadEvent event = reloading.reloader.Reload();
  EXPECT_EQ(event.outcome, Outcome::kSuspicious);
  EXPECT_THAT(event.suspicions, Contains(HasSubstr("only 2 overrides")));
}

}  // namespace
}  // namespace weir
