// Shows a limiter at work: two requests a second for each user, five at once.
#include <chrono>
#include <cstdio>
#include <thread>

#include <weir/weir.h>

namespace {

void Knock(weir::Limiter& limiter, const char* user) {
  const weir::Decision decision = limiter.Check(user);
  if (decision.allowed) {
    std::printf("  %-6s let through, %lld of %lld left\n", user,
                static_cast<long long>(decision.remaining), static_cast<long long>(decision.limit));
  } else {
    std::printf(
        "  %-6s stopped, may come back in %lld ms\n", user,
        static_cast<long long>(weir::RoundUpTo<std::chrono::milliseconds>(decision.retry_after)));
  }
}

}  // namespace

int main() {
  auto limiter = weir::Limiter::Make("2/s burst 5");
  if (!limiter) {
    std::fprintf(stderr, "%s\n", limiter.error().message.c_str());
    return 1;
  }

  std::puts("The limit is 2/s burst 5, counted for each user. Ann sends seven at once:");
  for (int i = 0; i < 7; ++i) Knock(*limiter, "ann");
  std::puts("Bob has a bucket of his own:");
  Knock(*limiter, "bob");
  std::puts("One second later two more of Ann's fit:");
  std::this_thread::sleep_for(std::chrono::seconds(1));
  for (int i = 0; i < 3; ++i) Knock(*limiter, "ann");
  std::puts("And one who would rather wait than be stopped:");
  const auto waited = limiter->Wait("ann", std::chrono::seconds(2));
  std::printf("  ann    %s\n", waited && waited->allowed ? "let through after a wait" : "stopped");
  return 0;
}
