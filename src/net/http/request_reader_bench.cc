// What it costs to read a request, beside Boost.Beast's parser on the same bytes.
#include "net/http/request_reader.h"

#include <cstdlib>
#include <string>

#include <benchmark/benchmark.h>

#include "net/http/second_parser.h"

namespace weir {
namespace {

constexpr HttpRequestReader::Bounds kBounds = {.header = 16 << 10, .body = 1 << 20};

std::string TypicalCheck() {
  const std::string body =
      R"({"ip":"203.0.113.9","user":"ann","method":"POST","path":"/orders/42/items",)"
      R"("host":"shop.example","headers":{"x-client":"mobile-7.2"},"tier":"gold","cost":1})";
  return "POST /v1/check HTTP/1.1\r\nHost: limits.internal:8080\r\nUser-Agent: shop-backend/3.1\r\n"
         "Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) +
         "\r\nX-Request-Id: 4bf92f3577b34da6a3ce929d0e0e4736\r\nConnection: keep-alive\r\n\r\n" +
         body;
}

void BM_OurReader(benchmark::State& state) {
  std::string text = TypicalCheck();
  HttpRequestReader reader;
  HttpHead head;
  for (auto _ : state) {
    if (reader.Read(text, kBounds, head) != HttpRequestReader::Outcome::kComplete) std::abort();
    benchmark::DoNotOptimize(reader.body().data());
    benchmark::DoNotOptimize(head);
  }
}
BENCHMARK(BM_OurReader);

void BM_BeastRequestParser(benchmark::State& state) {
  const std::string text = TypicalCheck();
  for (auto _ : state) {
    SecondOpinion opinion = ReadWithBeast(text);
    if (!opinion.request) std::abort();
    benchmark::DoNotOptimize(opinion);
  }
}
BENCHMARK(BM_BeastRequestParser);

// Beast's parser by itself, which keeps nothing of what it is told: the least it can cost.
class ForgetfulParser : public boost::beast::http::basic_parser<true> {
  using View = boost::beast::string_view;
  using Code = boost::beast::error_code;
  using Field = boost::beast::http::field;

  void on_request_impl(boost::beast::http::verb, View, View, int, Code&) override {}
  void on_response_impl(int, View, int, Code&) override {}
  void on_field_impl(Field, View, View, Code&) override {}
  void on_header_impl(Code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, Code&) override {}
  std::size_t on_body_impl(View body, Code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, View, Code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View body, Code&) override { return body.size(); }
  void on_finish_impl(Code&) override {}
};

void BM_BeastBasicParser(benchmark::State& state) {
  const std::string text = TypicalCheck();
  for (auto _ : state) {
    ForgetfulParser parser;
    parser.eager(true);
    boost::beast::error_code error;
    std::size_t used = 0;
    while (!parser.is_done() && !error) {
      used += parser.put(boost::asio::const_buffer(text.data() + used, text.size() - used), error);
    }
    if (error) std::abort();
    benchmark::DoNotOptimize(used);
  }
}
BENCHMARK(BM_BeastBasicParser);

}  // namespace
}  // namespace weir
