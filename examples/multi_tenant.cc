// A service for many tenants that pays by the token, as language models are paid: what a request
// costs is known only afterwards, so an estimate is reserved and the real cost committed.
#include <cstdio>
#include <string>

#include <weir/weir.h>

namespace {

// Stands for the model: answers, and tells how many tokens that took.
std::int64_t AskModel(const std::string& prompt) {
  return static_cast<std::int64_t>(prompt.size()) * 40;
}

void Answer(weir::Limiter& limiter, const std::string& tenant, const std::string& user,
            const std::string& prompt) {
  constexpr std::int64_t kEstimate = 500;
  // One key for each layer, in their order: all of them let the request through, or none is
  // charged. The third is the same for everybody.
  auto reserved = limiter.Reserve({tenant, tenant + "/" + user, "everybody"}, {.cost = kEstimate});
  if (!reserved) {
    std::fprintf(stderr, "%s\n", reserved.error().message.c_str());
    return;
  }
  const weir::Decision& decision = reserved->decision();
  if (!reserved->allowed()) {
    std::printf(
        "%-5s %-4s refused by %s, again in %lld s\n", tenant.c_str(), user.c_str(),
        std::string(decision.rule).c_str(),
        static_cast<long long>(weir::RoundUpTo<std::chrono::seconds>(decision.retry_after)));
    return;
  }
  const std::int64_t tokens = AskModel(prompt);
  // Less than the estimate goes back; more goes into debt, which the next requests pay off.
  const auto settled = reserved->Commit(tokens);
  if (!settled) return;  // It took longer than the reservation lasts: the estimate stays charged.
  std::printf("%-5s %-4s spent %4lld tokens; nearest to its limit is %s with %lld left\n",
              tenant.c_str(), user.c_str(), static_cast<long long>(tokens),
              std::string(settled->rule).c_str(), static_cast<long long>(settled->remaining));
}

}  // namespace

int main() {
  const auto limit = [](const char* text) { return weir::Limit::Parse(text).value(); };
  auto limiter = weir::Limiter::Make({
      {.name = "tenant", .limit = limit("5k/min")},
      {.name = "user", .limit = limit("2k/min burst 1500")},
      // Tried out before it is enforced: counts, but stops nobody.
      {.name = "global", .limit = limit("3k/min"), .shadow = true},
  });
  if (!limiter) {
    std::fprintf(stderr, "%s\n", limiter.error().message.c_str());
    return 1;
  }
  Answer(*limiter, "acme", "ann", "short");
  Answer(*limiter, "acme", "ann", "a question of some length, to which");
  Answer(*limiter, "acme", "ann", "one more");
  Answer(*limiter, "acme", "bob", "another user of the same tenant");
  Answer(*limiter, "beta", "cat", "somebody else altogether");
  return 0;
}
