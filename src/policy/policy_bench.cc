// How long it takes to take up a policy, by its parts.
#include <weir/policy.h>

#include <benchmark/benchmark.h>

#include "policy/policy_compiler.h"
#include "policy/policy_reader.h"

namespace weir {
namespace {

// Rules as a large service has them: a path of its own each, some by header, tier or ban.
std::string PolicyText(std::int64_t rules) {
  std::string text =
      "trusted_proxies: [10.0.0.0/8]\n"
      "identity:\n"
      "  user: { header: x-user-id }\n"
      "  tier: { header: x-tier, default: free }\n"
      "tiers:\n"
      "  free: { requests: 10/min burst 50 }\n"
      "  pro: { requests: 100/s burst 200 }\n"
      "rules:\n";
  for (std::int64_t i = 0; i < rules; ++i) {
    const std::string number = std::to_string(i);
    text += "  - name: rule-" + number + "\n    match: { path: \"/v" + std::to_string(i % 7) +
            "/service-" + number + "/{id}/**\", method: [GET, POST], user: present }\n";
    switch (i % 5) {
      case 0:
        text += "    key: user\n    limit: { tier: requests }\n";
        break;
      case 1:
        text += "    key: [user, path.id]\n    limit: 100/min\n    algorithm: sliding_window\n";
        break;
      case 2:
        text +=
            "    key: [user, header.x-" + number + "]\n    limit: 5/s\n    unidentified: skip\n";
        break;
      case 3:
        text += "    key: { first_of: [user, ip] }\n    limit: 1000/h\n    mode: shadow\n";
        break;
      default:
        text +=
            "    key: ip\n    limit: 5/min\n    algorithm: sliding_log\n"
            "    block: { after: 10 denials in 1min, for: 10min, growing: 2x up to 1day }\n";
    }
  }
  return text;
}

void BM_ReadYaml(benchmark::State& state) {
  const std::string text = PolicyText(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(ReadYaml(text));
}
BENCHMARK(BM_ReadYaml)->Arg(100)->Arg(10'000)->Unit(benchmark::kMillisecond);

void BM_ReadPolicy(benchmark::State& state) {
  const YamlReport report = ReadYaml(PolicyText(state.range(0)));
  for (auto _ : state) {
    ProblemList problems("");
    benchmark::DoNotOptimize(ReadPolicy(*report.root, problems));
  }
}
BENCHMARK(BM_ReadPolicy)->Arg(100)->Arg(10'000)->Unit(benchmark::kMillisecond);

// With advice.
void BM_CompilePolicy(benchmark::State& state) {
  const YamlReport report = ReadYaml(PolicyText(state.range(0)));
  ProblemList none("");
  const PolicySpec spec = ReadPolicy(*report.root, none);
  for (auto _ : state) {
    ProblemList problems("");
    benchmark::DoNotOptimize(CompilePolicy(spec, "", problems));
  }
}
BENCHMARK(BM_CompilePolicy)->Arg(100)->Arg(10'000)->Unit(benchmark::kMillisecond);

void BM_Advise(benchmark::State& state) {
  const Policy policy = *Policy::Parse(PolicyText(state.range(0))).policy;
  for (auto _ : state) {
    ProblemList problems("");
    Advise(policy.compiled(), problems);
    benchmark::DoNotOptimize(problems.Take());
  }
}
BENCHMARK(BM_Advise)->Arg(100)->Arg(10'000)->Unit(benchmark::kMillisecond);

void BM_Parse(benchmark::State& state) {
  const std::string text = PolicyText(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(Policy::Parse(text));
}
BENCHMARK(BM_Parse)->Arg(100)->Arg(10'000)->Unit(benchmark::kMillisecond);

void BM_ToYaml(benchmark::State& state) {
  const Policy policy = *Policy::Parse(PolicyText(state.range(0))).policy;
  for (auto _ : state) benchmark::DoNotOptimize(ToYaml(policy.spec()));
}
BENCHMARK(BM_ToYaml)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir
