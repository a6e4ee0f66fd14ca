// Whatever is in an access log, reading it must end well: every line is counted once, as what it
// is, and the requests are in the order of their time with texts that can be read.
//
// The first byte picks the format, the last standing for auto; the rest is the text.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "lab/log/log_format.h"
#include "lab/log/parsed_block.h"

namespace {

using weir::lab::LogRecord;

constexpr std::array<const char*, 7> kFormats = {"combined", "alb", "caddy", "envoy",
                                                 "jsonl",    "csv", "auto"};

[[noreturn]] void Fail(const char* what, std::uint64_t line) {
  std::fprintf(stderr, "line %llu: %s\n", static_cast<unsigned long long>(line), what);
  std::abort();
}

// Reads every byte, so that a text that is not there is noticed.
std::size_t Touch(const LogRecord& record) {
  std::size_t sum = 0;
  const auto touch = [&](std::string_view text) {
    for (const char c : text) sum += static_cast<unsigned char>(c);
  };
  for (const std::string_view text :
       {record.ip, record.user, record.api_key, record.org, record.tier, record.method, record.path,
        record.host, record.user_agent}) {
    touch(text);
  }
  for (const std::string_view text : record.wanted) touch(text);
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  weir::lab::ParsedBlock block;
  block.text.room = std::make_unique<char[]>(text.size() + weir::lab::kLinePadding);
  std::memcpy(block.text.room.get(), text.data(), text.size());
  block.text.size = text.size();
  block.text.is_last = true;
  weir::lab::ColumnNames names{.wanted = {"referer", "a.b", "n"}};
  if (data[0] >= 128) names.named = {{"org", "status"}};
  const auto format = weir::lab::FindFormat({.file = "log",
                                             .begins = block.text.text(),
                                             .is_all = true,
                                             .format = kFormats[data[0] % kFormats.size()]},
                                            names);
  if (!format) {
    if (format.error().message.empty()) Fail("an error without a reason", 0);
    return 0;
  }
  const auto parser = format->format->MakeParser();
  weir::lab::ParseBlock(
      block, *parser,
      {.heading_lines = format->heading_lines, .horizon = std::chrono::seconds(60)});
  const weir::lab::LogCounts& counts = block.counts;
  if (counts.requests != block.records.size()) Fail("requests are not those counted", 0);
  if (counts.lines != counts.requests + counts.blank + counts.left_out()) {
    Fail("a line is not counted, or is twice", counts.lines);
  }
  std::size_t sum = 0;
  for (std::size_t i = 0; i < block.records.size(); ++i) {
    const LogRecord& record = block.records[i];
    if (record.line == 0 || record.line > counts.lines) Fail("no such line", record.line);
    if (record.time < weir::WallTime()) Fail("a time before 1970", record.line);
    if (record.cost < 0) Fail("a negative cost", record.line);
    if (i > 0 && record.time < block.records[i - 1].time) Fail("out of order", record.line);
    sum += Touch(record);
  }
  for (const auto& example : counts.examples) {
    if (example.why.empty()) Fail("left out without a reason", example.line);
    for (const char c : example.text) {
      if (c < ' ' || c > '~') Fail("an example that cannot be shown", example.line);
    }
  }
  // Somebody must want it, or it is not read at all.
  return sum == static_cast<std::size_t>(-1) ? 1 : 0;
}
