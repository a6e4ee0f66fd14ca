// How long it takes to answer the commands of a pipeline, the kernel left out.
#include "frontend/resp/resp_protocol.h"

#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "frontend/exchange_under_test.h"
#include "frontend/resp/decision_reply.h"
#include "net/resp/writer.h"

namespace weir {
namespace {

constexpr int kDepth = 64;

constexpr std::string_view kPolicy = R"(
rules:
  - {name: per-ip, key: ip, limit: 100000000/min burst 100000000}
  - {name: per-user, match: {user: present}, key: user, limit: 100000000/min burst 100000000}
  - {name: orders, match: {path: /orders, user: present}, key: [user, ip],
     limit: 100000000/min burst 100000000}
)";

void AnswerAll(benchmark::State& state, const std::vector<std::string_view>& words) {
  ExchangeUnderTest exchange(*Policy::Parse(kPolicy).policy, MakeRespProtocol);
  ByteBuffer bytes;
  for (int i = 0; i < kDepth; ++i) resp::WriteCommand(bytes, words);
  for (auto _ : state) {
    const Protocol::Progress progress = exchange.protocol().OnInput(bytes.bytes());
    if (progress.used != bytes.size()) return state.SkipWithError("not all was taken up");
    benchmark::DoNotOptimize(exchange.replies().ready().view().data());
    exchange.replies().ready().Clear();
    exchange.clock.Advance(std::chrono::microseconds(20));
  }
  state.SetItemsProcessed(state.iterations() * kDepth);
}

void CheckUnderThreeRules(benchmark::State& state) {
  AnswerAll(state, {"WEIR.CHECK", "*", "ip", "203.0.113.9", "user", "ann", "path", "/orders"});
}
BENCHMARK(CheckUnderThreeRules);

void ClThrottle(benchmark::State& state) {
  AnswerAll(state, {"CL.THROTTLE", "user:1234567", "1000000", "1000000", "1"});
}
BENCHMARK(ClThrottle);

void LimitInText(benchmark::State& state) {
  AnswerAll(state, {"WEIR.LIMIT", "user:1234567", "1000000/s burst 1000000"});
}
BENCHMARK(LimitInText);

void Ping(benchmark::State& state) { AnswerAll(state, {"PING"}); }
BENCHMARK(Ping);

void WriteADecision(benchmark::State& state) {
  const Decision decision{.allowed = true,
                          .reason = Reason::kOk,
                          .rule = "per-user",
                          .limit = 100,
                          .remaining = 98,
                          .cost = 1,
                          .reset_after = std::chrono::milliseconds(1'234)};
  const WallTime now{std::chrono::seconds(1'717'920'000)};
  ByteBuffer out;
  for (auto _ : state) {
    resp::WriteDecision(out, resp::Version::kResp3, decision, now);
    benchmark::DoNotOptimize(out.view().data());
    out.Clear();
  }
}
BENCHMARK(WriteADecision);

}  // namespace
}  // namespace weir
