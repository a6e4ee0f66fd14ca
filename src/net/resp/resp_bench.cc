// How long it takes to read the commands of a pipeline, and to write them.
#include <array>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "net/resp/command_reader.h"
#include "net/resp/reply_reader.h"
#include "net/resp/writer.h"

namespace weir::resp {
namespace {

constexpr int kDepth = 64;

std::string Pipeline(const std::vector<std::string_view>& words) {
  ByteBuffer bytes;
  for (int i = 0; i < kDepth; ++i) WriteCommand(bytes, words);
  return std::string(bytes.view());
}

void ReadAll(benchmark::State& state, const std::vector<std::string_view>& words) {
  std::string bytes = Pipeline(words);
  std::array<std::string_view, 2048> room;
  CommandReader reader;
  for (auto _ : state) {
    std::span<char> left(bytes);
    std::size_t arguments = 0;
    for (int i = 0; i < kDepth; ++i) {
      const CommandReading reading =
          reader.Read(left, std::span(room).subspan(arguments % 1024), {});
      if (reading.kind != CommandReading::Kind::kCommand) return state.SkipWithError("misread");
      arguments += reading.arguments;
      left = left.subspan(reading.used);
    }
    benchmark::DoNotOptimize(room);
    benchmark::DoNotOptimize(arguments);
  }
  state.SetItemsProcessed(state.iterations() * kDepth);
}

void ReadThrottle(benchmark::State& state) {
  ReadAll(state, {"CL.THROTTLE", "user:1234567", "15", "30", "60", "1"});
}
BENCHMARK(ReadThrottle);

void ReadCheckOfThree(benchmark::State& state) {
  ReadAll(state, {"WEIR.CHECK", "*", "ip", "203.0.113.9", "user", "user1234", "path", "/orders"});
}
BENCHMARK(ReadCheckOfThree);

void ReadTwentyWords(benchmark::State& state) {
  ReadAll(state, {"WEIR.CHECK",
                  "*",
                  "ip",
                  "203.0.113.9",
                  "user",
                  "user1234",
                  "path",
                  "/login",
                  "method",
                  "POST",
                  "host",
                  "example.org",
                  "header.x-plan",
                  "gold",
                  "api_key",
                  "k-123",
                  "org",
                  "acme",
                  "query.with_a_name1",
                  "yes"});
}
BENCHMARK(ReadTwentyWords);

void WriteThrottle(benchmark::State& state) {
  const std::array<std::string_view, 6> words = {"CL.THROTTLE", "user:1234567", "15",
                                                 "30",          "60",           "1"};
  ByteBuffer bytes;
  for (auto _ : state) {
    WriteCommand(bytes, words);
    benchmark::DoNotOptimize(bytes.view().data());
    bytes.Clear();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(WriteThrottle);

void ReadReplyOfFive(benchmark::State& state) {
  const std::string reply = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n";
  ReplyReader reader;
  for (auto _ : state) {
    std::string_view left = reply;
    while (!left.empty()) {
      const ReplyReading reading = reader.Read(left);
      if (reading.kind != ReplyReading::Kind::kItem) return state.SkipWithError("misread");
      benchmark::DoNotOptimize(reading.item.integer);
      left.remove_prefix(reading.used);
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ReadReplyOfFive);

}  // namespace
}  // namespace weir::resp
