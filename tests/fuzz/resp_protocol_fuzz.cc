// The service as a hostile Redis client sees it: whatever is sent, every reply can be read, there
// are no more of them than commands, and nothing is said after the end.
//
// The first byte says who is asking and how the bytes are cut.
#include "frontend/resp/resp_protocol.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/exchange_under_test.h"
#include "net/resp/command_reader.h"
#include "net/resp/reply_reader.h"

namespace {

using namespace weir;

constexpr std::string_view kPolicy = R"(
limits: {command: 2kB}
rules:
  - {name: users, match: {user: "*"}, key: user, limit: 5/min}
  - {name: plans, match: {header.x-plan: "*", path: /a/**}, key: [header.x-plan, ip], limit: 2/s burst 9}
  - {name: some, match: {path: /slow}, key: ip, limit: 2 concurrent}
)";

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

const Policy& ThePolicy() {
  static const Policy policy = [] {
    PolicyReport report = Policy::Parse(kPolicy);
    if (!report.policy) {
      for (const Problem& problem : report.problems) {
        std::fprintf(stderr, "%s\n", problem.ToString().c_str());
      }
      Fail("the policy is wrong");
    }
    return *report.policy;
  }();
  return policy;
}

std::size_t CountReplies(std::string_view bytes) {
  resp::ReplyReader reader;
  std::size_t replies = 0;
  while (!bytes.empty()) {
    const resp::ReplyReading reading = reader.Read(bytes);
    if (reading.kind != resp::ReplyReading::Kind::kItem) Fail("not a reply");
    if (reading.item.ends_reply) ++replies;
    bytes.remove_prefix(reading.used);
  }
  return replies;
}

// One more for what follows the last of them, which may be an error.
std::size_t MostReplies(std::string bytes, std::size_t most_bytes) {
  resp::CommandReader reader;
  std::vector<std::string_view> room(1024);
  std::size_t commands = 0;
  std::span<char> left(bytes);
  while (true) {
    const resp::CommandReading reading = reader.Read(left, room, {.bytes = most_bytes});
    if (reading.kind != resp::CommandReading::Kind::kCommand) return commands + 1;
    if (reading.arguments > 0) ++commands;
    left = left.subspan(reading.used);
  }
}

ExchangeUnderTest::Options OptionsFor(std::uint8_t kind) {
  ExchangeUnderTest::Options options;
  options.settings = *Settings::Of(ThePolicy().spec());
  if ((kind & 1) != 0) options.access = {.token = "t", .manage_token = "m"};
  if ((kind & 2) != 0) options.bounds = {.bytes = 200, .held = 2};
  options.late = (kind & 128) != 0;
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  ExchangeUnderTest exchange(ThePolicy(), MakeRespProtocol, OptionsFor(data[0]));
  const std::size_t piece = (data[0] & 124) == 0 ? size : (data[0] & 124) >> 2;
  std::string replies = exchange.SendInPieces(text, piece);
  // Those that wait are answered one by one, and those that asked, the last first, until nothing
  // more comes of what is left over.
  for (std::size_t decided = 0, before = size; true;) {
    for (; decided < exchange.waits.size(); ++decided) {
      exchange.Decide(exchange.waits[decided], {.decision = {.allowed = true}});
    }
    exchange.late.AnswerAllBackwards();
    replies += exchange.Take();
    if (exchange.left_over().size() == before && decided == exchange.waits.size()) break;
    before = exchange.left_over().size();
    exchange.TakeUp();
    replies += exchange.Take();
  }
  const std::size_t most =
      MostReplies(text, static_cast<std::size_t>(ThePolicy().spec().limits.command));
  if (CountReplies(replies) > most) Fail("more replies than commands");
  return 0;
}
