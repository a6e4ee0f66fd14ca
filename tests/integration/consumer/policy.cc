// The smallest program with a policy: one rule from text, so the third request is denied.
#include <weir/engine.h>

int main() {
  const weir::PolicyReport report = weir::Policy::Parse(
      "rules: [{ name: per-user, key: user, limit: 2/min, unidentified: skip }]");
  if (!report.policy) return 1;
  auto engine = weir::Engine::Make(*report.policy);
  const auto allowed = [&] { return engine->Check({.user = "ann"}).decision.allowed; };
  return engine && allowed() && allowed() && !allowed() ? 0 : 1;
}
