// How long it takes to find the matches that hold, alone and among many that do not.
#include "policy/matcher.h"

#include <array>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "policy/path.h"

namespace weir {
namespace {

// The three that hold for the request below, then others of every kind that do not.
std::vector<Match> Matches(std::size_t count) {
  std::vector<Match> matches = {
      {}, {Present("user")}, {{"path", {"/auth/login"}}, {"method", {"POST"}}}};
  constexpr std::array<const char*, 4> kMethods = {"GET", "POST", "PUT", "DELETE"};
  while (matches.size() < count) {
    const std::string n = std::to_string(matches.size());
    const std::string method = kMethods[matches.size() / 8 % kMethods.size()];
    switch (matches.size() % 8) {
      case 0:
        matches.push_back({{"path", {"/v1/items" + n}}, {"method", {method}}});
        break;
      case 1:
        matches.push_back({{"path", {"/auth/" + n + "/**"}}});
        break;
      case 2:
        matches.push_back({{"path", {"/{tenant}/reports" + n + "/*"}}, Present("user")});
        break;
      case 3:
        matches.push_back({{"header.x-plan", {"plan" + n}}, {"path", {"/**"}}});
        break;
      case 4:
        matches.push_back({{"host", {"h" + n + ".example.org"}}, {"method", {method}}});
        break;
      case 5:
        matches.push_back({{"tier", {"tier" + n}}, Present("user")});
        break;
      case 6:
        matches.push_back({{"ip", {"10." + std::to_string(matches.size() % 256) + ".0.0/16"}}});
        break;
      default:
        matches.push_back(
            {{"user", {"user" + n}}, {"path", {"/auth/login"}}, {"method", {method}}});
    }
  }
  return matches;
}

std::vector<CompiledMatch> Compiled(const std::vector<Match>& matches) {
  std::vector<CompiledMatch> compiled;
  for (const Match& match : matches) compiled.push_back(CompiledMatch::Make(match).value());
  return compiled;
}

void FindThree(benchmark::State& state) {
  const Matcher matcher(Compiled(Matches(static_cast<std::size_t>(state.range(0)))));
  const std::array<NamedValue, 6> headers = {{{"Host", "api.example.org"},
                                              {"User-Agent", "curl/8.5.0"},
                                              {"Accept", "*/*"},
                                              {"Content-Type", "application/json"},
                                              {"X-Plan", "gold"},
                                              {"X-Request-Id", "f2c7a9"}}};
  const Request request{.ip = "203.0.113.9",
                        .user = "ann",
                        .tier = "pro",
                        .method = "POST",
                        .path = "/auth/login",
                        .host = "api.example.org",
                        .headers = headers};
  std::uint64_t found = 0;
  for (auto _ : state) {
    const Facts facts(request);
    matcher.ForEach(facts, [&](std::uint32_t number) {
      benchmark::DoNotOptimize(number);
      ++found;
    });
  }
  if (found != 3 * static_cast<std::uint64_t>(state.iterations())) state.SkipWithError("not three");
}
BENCHMARK(FindThree)->Arg(3)->Arg(100)->Arg(1'000)->Arg(10'000);

void Compile(benchmark::State& state) {
  const std::vector<Match> matches = Matches(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const Matcher matcher(Compiled(matches));
    benchmark::DoNotOptimize(&matcher);
  }
}
BENCHMARK(Compile)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

void Normalize(benchmark::State& state, const std::string& path) {
  std::array<char, 64> buffer;
  for (auto _ : state) {
    const char* at = path.data();
    benchmark::DoNotOptimize(at);
    benchmark::DoNotOptimize(NormalizePath({at, path.size()}, buffer));
  }
}
BENCHMARK_CAPTURE(Normalize, Normal, "/api/v1/orders/12345");
BENCHMARK_CAPTURE(Normalize, NotNormal, "/api/v1/./orders/%6123");

}  // namespace
}  // namespace weir
