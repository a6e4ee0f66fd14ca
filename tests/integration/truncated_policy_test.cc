// A policy file whose writing was cut short, wherever that was: it never takes effect.
#include <string>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "engine/policy_files_under_test.h"
#include "engine/policy_reloader.h"
#include "policy/file_text.h"

namespace weir {
namespace {

using Outcome = ReloadEvent::Outcome;

TEST(TruncatedPolicy, NeverTakesEffect) {
  const std::string whole =
      ReadWholeFile(WEIR_SOURCE_DIR "/examples/policies/shop.yaml", 1 << 20).value();
  const PolicyFolder folder;
  folder.Write("weir.yaml", whole);
  EngineUnderTest under_test(*Policy::Load(folder.File("weir.yaml")).policy);
  PolicyReloader reloader(under_test.engine, folder.File("weir.yaml"), false);
  const PolicySpec full = under_test.engine.policy().spec();
  ASSERT_EQ(full.rules.size(), 6U);
  std::size_t suspicious = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    folder.Write("weir.yaml", whole.substr(0, size));
    const ReloadEvent event = reloader.Reload();
    ASSERT_EQ(under_test.engine.policy().spec(), full)
        << "cut at " << size << ": " << event.ToString();
    if (event.outcome == Outcome::kSuspicious) ++suspicious;
    if (event.outcome != Outcome::kApplied) continue;
    // Nothing but a comment was missing. The next ones are cut from the whole again.
    folder.Write("weir.yaml", whole);
    ASSERT_EQ(reloader.Reload().outcome, Outcome::kApplied);
  }
  EXPECT_GT(suspicious, 100U);  // Many would make sense by themselves.
}

}  // namespace
}  // namespace weir
