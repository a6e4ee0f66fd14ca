#include "trace_run.h"

#include <cstdio>
#include <cstdlib>
#include <random>

#include "random.h"

namespace weir::conformance {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_SANITIZER
#endif
#endif

#ifdef WEIR_SANITIZER
constexpr std::uint64_t kSteps = 100'000;
#else
constexpr std::uint64_t kSteps = 1'000'000;
#endif
#undef WEIR_SANITIZER

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace

std::optional<std::string> RunSeeds(Family family, std::uint64_t fewer,
                                    const std::function<SeedRun(std::uint64_t seed)>& run) {
  static const std::uint64_t seed = FromEnvironment("WEIR_SEED", std::random_device{}());
  std::printf("WEIR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  const std::uint64_t only = FromEnvironment("WEIR_TRACE", 0);
  const std::uint64_t usual = kSteps / fewer / (FromEnvironment("WEIR_SHORT", 0) != 0 ? 5 : 1);
  const std::uint64_t steps = only == 0 ? FromEnvironment("WEIR_STEPS", usual) : 1;
  const std::uint64_t family_seed = Derive(seed, static_cast<std::uint64_t>(family));
  std::uint64_t done = 0;
  for (std::uint64_t i = 0; done < steps; ++i) {
    const std::uint64_t trace_seed = only == 0 ? Derive(family_seed, i) : only;
    const SeedRun ran = run(trace_seed);
    if (ran.wrong) return *ran.wrong + "WEIR_TRACE=" + std::to_string(trace_seed);
    done += ran.steps;
  }
  return std::nullopt;
}

std::optional<std::string> RunTraces(Family family, const TraceOptions& options, const Trial& trial,
                                     std::uint64_t fewer) {
  return RunSeeds(family, fewer, [&](std::uint64_t seed) -> SeedRun {
    const Trace trace = MakeTrace(family, seed, options);
    if (!trial(trace)) return {.steps = trace.steps.size()};
    const Trace least = Shrink(trace, trial);
    return {.steps = trace.steps.size(), .wrong = *trial(least) + "\n" + Describe(least)};
  });
}

}  // namespace weir::conformance
