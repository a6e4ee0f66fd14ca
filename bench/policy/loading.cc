#include "loading.h"

#include <malloc.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>

#include <weir/engine.h>

#include "harness/keys.h"
#include "harness/require.h"
#include "harness/resident_memory.h"
#include "policies.h"
#include "policy/compiled_policy.h"
#include "policy/yaml_tree.h"

namespace weir::bench {
namespace {

// Runs `step` once in every round.
template <typename Step>
void Register(const std::string& name, Step step) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 for ([[maybe_unused]] auto _ : state) step();
                                 state.SetItemsProcessed(1);
                               })
      ->Iterations(1)
      ->UseRealTime();
}

Policy Load(const std::string& path) {
  const PolicyReport report = Policy::Load(path);
  Require(report.policy.has_value(), "the policy has no errors");
  return *report.policy;
}

void WriteRows(const OverridesOptions& options, const std::string& path) {
  std::ofstream file(path);
  std::array<char, kKeyBytes> text;
  const std::string_view user(text.data(), text.size());
  const bool csv = options.format == "csv";
  if (csv) file << "user,limit\n";
  for (std::size_t row = 0; row < options.rows; ++row) {
    WriteKey(row, text.data());
    const std::size_t limit = row % options.limits + 1;
    if (csv) {
      file << user << ',' << limit << "/min\n";
    } else {
      file << R"({"user": ")" << user << R"(", "limit": ")" << limit << "/min\"}\n";
    }
  }
  file.close();
  Require(file.good(), "the file can be written");
}

// Returns the path of a policy with the overrides.
std::string WritePolicy(const OverridesOptions& options) {
  const std::string rows = "overrides-" + std::to_string(options.limits) + "." + options.format;
  WriteRows(options, options.folder + "/" + rows);
  PolicySpec spec = MakeSpec({});
  spec.rules[1].override_files = {rows};
  const std::string path = options.folder + "/overrides.yaml";
  std::ofstream file(path);
  file << ToYaml(spec);
  file.close();
  Require(file.good(), "the file can be written");
  return path;
}

}  // namespace

void RunLoading(int rounds, Results& results) {
  const std::string small = ToYaml(MakeSpec({.rules = 1'000, .hits = Hits::kEndpoint}));
  const std::string large = ToYaml(MakeSpec({.rules = 10'000, .hits = Hits::kEndpoint}));
  for (const auto& [name, yaml] : {std::pair("1000", &small), {"10000", &large}}) {
    Register(std::string("parse/") + name,
             [yaml] { Require(Policy::Parse(*yaml).policy.has_value(), "there are no errors"); });
    Register(std::string("yaml/") + name,
             [yaml] { Require(ReadYaml(*yaml).root.has_value(), "there are no errors"); });
  }
  const std::array<Policy, 2> policies = {
      MakePolicy({.rules = 1'000, .hits = Hits::kEndpoint}),
      MakePolicy({.rules = 1'000, .hits = Hits::kEndpoint, .limit = "20G/day"})};
  Engine engine = *Engine::Make(policies[0]);
  std::size_t next = 1;
  Register("apply/1000", [&] {
    const Result<PolicyChange> change = engine.Apply(policies[next]);
    Require(change && change->limits_changed.size() == 1'000, "every limit has changed");
    next = 1 - next;
  });
  results.RunRounds(rounds);
  benchmark::ClearRegisteredBenchmarks();
}

void PrintOverrides(const OverridesOptions& options) {
  const std::string path = WritePolicy(options);
  malloc_trim(0);
  const std::uint64_t before = ResidentBytes();
  std::uint64_t resident = 0;
  std::size_t table_bytes = 0;
  std::printf("{\"seconds\": [");
  for (int round = 0; round < options.rounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    const Policy policy = Load(path);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::printf("%s%.4f", round == 0 ? "" : ", ", took.count());
    const auto& table = policy.compiled().rules[1].overrides;
    Require(table != nullptr && table->size() == options.rows, "every row is in the table");
    if (round > 0) continue;
    malloc_trim(0);
    resident = ResidentBytes() - before;
    table_bytes = table->bytes();
  }
  std::printf("], \"resident\": %ju, \"table\": %zu}\n", static_cast<std::uintmax_t>(resident),
              table_bytes);
}

}  // namespace weir::bench
