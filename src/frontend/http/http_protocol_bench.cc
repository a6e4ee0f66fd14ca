// What a request costs outside of the kernel: from its bytes to the bytes of its reply, with three
// rules that match it.
#include "frontend/http/http_protocol.h"

#include <array>
#include <cstdlib>
#include <string>

#include <benchmark/benchmark.h>

#include "frontend/exchange_under_test.h"

namespace weir {
namespace {

Policy ThreeRules(const std::string& limit) {
  return *Policy::Parse(
              "trusted_proxies: [203.0.113.9]\n"
              "identity: {user: {header: x-user}, org: {header: x-org}}\n"
              "rules:\n"
              "  - {name: per-ip, key: ip, limit: " +
              limit +
              "}\n"
              "  - {name: per-user, key: user, limit: " +
              limit +
              "}\n"
              "  - {name: orders, match: {path: /orders/**}, key: org, limit: " +
              limit + "}\n")
              .policy;
}

std::string Check() {
  const std::string body =
      R"({"ip":"203.0.113.9","user":"ann","org":"acme","method":"POST","path":"/orders/42"})";
  return "POST /v1/check HTTP/1.1\r\nHost: limits.internal:8080\r\nUser-Agent: shop-backend/3.1\r\n"
         "Accept: */*\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// The reply is thrown away as a connection does that has sent it.
void Run(benchmark::State& state, const std::string& limit, std::string_view status) {
  ExchangeUnderTest exchange(ThreeRules(limit), MakeHttpProtocol);
  const auto depth = static_cast<std::size_t>(state.range(0));
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += Check();
  for (int i = 0; i < 10; ++i) exchange.Send(Check());
  if (!exchange.Send(Check()).starts_with(status)) std::abort();
  for (auto _ : state) {
    if (exchange.protocol().OnInput(text).decided != depth) std::abort();
    exchange.replies().ready().Clear();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// Of different clients, so that no head is as the one before it.
std::string Auth(int client) {
  return "GET /v1/auth HTTP/1.1\r\nHost: limits.internal:8080\r\nX-Forwarded-Method: POST\r\n"
         "X-Forwarded-Uri: /orders/42\r\nX-Forwarded-Host: shop.example\r\n"
         "X-Forwarded-For: 203.0.114." +
         std::to_string(client) +
         "\r\nX-User: ann\r\nX-Org: acme\r\nUser-Agent: shop/3.1\r\nAccept: */*\r\n\r\n";
}

void BM_ForwardAuth(benchmark::State& state) {
  ExchangeUnderTest exchange(ThreeRules("1M/s"), MakeHttpProtocol);
  std::array<std::string, 2> texts = {Auth(10), Auth(11)};
  if (!exchange.Send(texts[0]).starts_with("HTTP/1.1 200 ")) std::abort();
  std::size_t number = 0;
  for (auto _ : state) {
    if (exchange.protocol().OnInput(texts[++number % 2]).decided != 1) std::abort();
    exchange.replies().ready().Clear();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ForwardAuth);

void BM_Allowed(benchmark::State& state) { Run(state, "1M/s", "HTTP/1.1 200 "); }
BENCHMARK(BM_Allowed)->Arg(1)->Arg(16);

void BM_Denied(benchmark::State& state) { Run(state, "2/day", "HTTP/1.1 429 "); }
BENCHMARK(BM_Denied)->Arg(1)->Arg(16);

}  // namespace
}  // namespace weir
