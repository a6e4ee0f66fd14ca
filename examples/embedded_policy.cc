// A policy and its engine in this process: layered rules made in code, shown as the file they would
// be, asked about some requests, and changed while they are in use.
#include <chrono>
#include <cstdio>
#include <string>

#include <weir/engine.h>

namespace {

weir::PolicySpec ShopRules() {
  weir::PolicySpec spec;
  spec.identity["tier"] = {.fallback = "free"};
  spec.tiers["free"] = {{"requests", "10/min burst 20"}};
  spec.tiers["pro"] = {{"requests", "100/s burst 200"}};
  spec.allow = {{{"path", {"/healthz"}}}};
  spec.rules = {
      {.name = "per-ip", .key = {"ip"}, .limit = "200/min"},
      {.name = "per-user",
       .match = {weir::Present("user")},
       .key = {"user"},
       .tier_limit = "requests"},
      {.name = "login",
       .match = {{"path", {"/auth/login"}}, {"method", {"POST"}}},
       .key = {"ip"},
       .limit = "5/min",
       .algorithm = weir::Algorithm::kSlidingLog,
       .message = "Too many attempts"},
  };
  return spec;
}

void Show(weir::Engine& engine, const char* who, const weir::Request& request) {
  const weir::Answer answer = engine.Check(request);
  const weir::Decision& decision = answer.decision;
  std::printf(
      "%-18s %-8s rule %-9.*s %d of %d left, because: %.*s\n", who,
      decision.allowed ? "allowed" : "denied", static_cast<int>(decision.rule.size()),
      decision.rule.data(), static_cast<int>(decision.remaining), static_cast<int>(decision.limit),
      static_cast<int>(weir::NameOf(decision.reason).size()), weir::NameOf(decision.reason).data());
}

}  // namespace

int main() {
  weir::PolicySpec spec = ShopRules();
  std::printf("The policy as a file:\n\n%s\n", weir::ToYaml(spec).c_str());

  const weir::PolicyReport report = weir::Policy::Make(spec);
  for (const weir::Problem& problem : report.problems) {
    std::fprintf(stderr, "%s\n", problem.ToString().c_str());
  }
  if (!report.policy) return 1;
  auto engine = weir::Engine::Make(*report.policy);
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;

  Show(*engine, "a health check", {.ip = "203.0.113.9", .path = "/healthz"});
  Show(*engine, "a stranger", {.ip = "203.0.113.9", .path = "/"});
  Show(*engine, "ann", {.ip = "203.0.113.9", .user = "ann", .path = "/"});
  Show(*engine, "bob, who pays", {.ip = "203.0.113.9", .user = "bob", .tier = "pro", .path = "/"});
  for (int i = 0; i < 6; ++i) {
    Show(*engine, "somebody guessing",
         {.ip = "198.51.100.7", .method = "POST", .path = "/auth/login"});
  }

  // Twice as much for the free tier, from now on. Who has used some keeps it.
  spec.tiers["free"]["requests"] = "20/min burst 40";
  const weir::PolicyReport changed = weir::Policy::Make(spec);
  if (!changed.policy) return 1;
  const weir::Result<weir::PolicyChange> change = engine->Apply(*changed.policy);
  if (!change) return std::fprintf(stderr, "%s\n", change.error().message.c_str()), 1;
  std::printf("\nVersion %d is in force.\n", static_cast<int>(change->version));
  Show(*engine, "ann", {.ip = "203.0.113.9", .user = "ann", .path = "/"});
}
