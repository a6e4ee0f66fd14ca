// Limits that several processes share through Redis, without the daemon: start this program twice
// and both draw on the same counts. Without a Redis it works all the same, and says so.
//
//   ./shared_policy                        redis://127.0.0.1:6379, or what REDIS_URL says
//   REDIS_URL=redis://host:6380/1 ./shared_policy
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <weir/engine.h>

namespace {

weir::PolicySpec SharedRules(const std::string& address) {
  weir::PolicySpec spec;
  spec.store = {address};
  // A password would stand in the address as env:NAME or file:PATH: where it is, not what it is.
  spec.redis.timeout = std::chrono::milliseconds(50);
  // While the store cannot be asked: this process's share, unless a rule says otherwise.
  spec.on_store_failure = weir::FailureMode::kStatic;
  spec.rules = {
      {.name = "per-ip", .key = {"ip"}, .limit = "20/min"},
      {.name = "login",
       .match = {{"path", {"/auth/login"}}, {"method", {"POST"}}},
       .key = {"ip"},
       .limit = "5/min",
       .algorithm = weir::Algorithm::kSlidingLog,
       .message = "Too many attempts",
       // Better to turn people away than to let passwords be tried.
       .on_store_failure = weir::FailureMode::kClosed},
  };
  return spec;
}

void Show(weir::Engine& engine, const char* what, const weir::Request& request) {
  const weir::Decision decision = engine.Check(request).decision;
  const std::string_view reason = weir::NameOf(decision.reason);
  const std::string_view source = weir::NameOf(decision.source);
  std::printf("%-8s %-8s %2d of %2d left, because: %.*s, decided by: %.*s\n", what,
              decision.allowed ? "allowed" : "denied", static_cast<int>(decision.remaining),
              static_cast<int>(decision.limit), static_cast<int>(reason.size()), reason.data(),
              static_cast<int>(source.size()), source.data());
}

}  // namespace

int main() {
  const char* const stated = std::getenv("REDIS_URL");
  const std::string address = stated != nullptr ? stated : "redis://127.0.0.1:6379";
  const weir::PolicyReport report = weir::Policy::Make(SharedRules(address));
  if (!report.policy) {
    for (const weir::Problem& problem : report.problems) {
      std::fprintf(stderr, "%s\n", problem.ToString().c_str());
    }
    return 1;
  }
  auto engine = weir::Engine::Make(*report.policy, {.on_notice = [](std::string_view text) {
    std::printf("  (%.*s)\n", static_cast<int>(text.size()), text.data());
  }});
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;

  // A program need not wait for the store: until it is there, rules decide as they say for that.
  for (int i = 0; i < 20 && (i == 0 || engine->Health().degraded); ++i) {
    engine->Peek({.ip = "203.0.113.9", .path = "/"});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (int i = 0; i < 3; ++i) Show(*engine, "browse", {.ip = "203.0.113.9", .path = "/"});
  Show(*engine, "login", {.ip = "203.0.113.9", .method = "POST", .path = "/auth/login"});

  const weir::StoreHealth health = engine->Health();
  std::printf("%s; %d process%s share%s it\n",
              health.degraded ? "The store cannot be asked" : "The store is well",
              health.fleet_size, health.fleet_size == 1 ? "" : "es",
              health.fleet_size == 1 ? "s" : "");
}
