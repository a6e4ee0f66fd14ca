// Commands read from any bytes: however these are put together, the same commands and the same
// error come out, every word lies within the input, and nothing is read twice.
//
// The first byte says where the bytes are cut.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "in_pieces.h"
#include "net/resp/command_reader.h"

namespace {

using weir::fuzz::Fail;
using weir::resp::CommandBounds;
using weir::resp::CommandReader;
using weir::resp::CommandReading;

constexpr CommandBounds kBounds{.arguments = 16, .bytes = 256};

struct Outcome {
  std::vector<std::vector<std::string>> commands{};
  std::string error{};

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class Reading {
 public:
  // False if no more can be read.
  bool Take(std::string_view bytes) {
    input_ += bytes;
    while (true) {
      // As large as it is, so that the sanitizer sees what lies beyond.
      std::vector<char> exact(input_.begin(), input_.end());
      std::vector<std::string_view> room(kBounds.arguments);
      const CommandReading reading = reader_.Read(exact, room, kBounds);
      switch (reading.kind) {
        case CommandReading::Kind::kIncomplete:
          if (reading.wants != 0 && reading.wants <= input_.size()) Fail("wants what it has");
          if (reading.wants > kBounds.bytes) Fail("wants more than it may have");
          return true;
        case CommandReading::Kind::kNoRoom:
          Fail("no room where there is all that may be needed");
        case CommandReading::Kind::kMalformed:
        case CommandReading::Kind::kTooLarge:
          outcome_.error = ErrorText(reading);
          if (!outcome_.error.starts_with("Protocol error")) Fail("an error that is none");
          return false;
        case CommandReading::Kind::kCommand:
          Keep(exact, room, reading);
      }
    }
  }
  const Outcome& outcome() const { return outcome_; }

 private:
  void Keep(const std::vector<char>& exact, const std::vector<std::string_view>& room,
            const CommandReading& reading) {
    if (reading.used == 0 || reading.used > exact.size()) Fail("used what is not there");
    if (reading.used > kBounds.bytes) Fail("longer than it may be");
    if (reading.arguments > kBounds.arguments) Fail("more words than there may be");
    std::vector<std::string> command;
    for (std::size_t i = 0; i < reading.arguments; ++i) {
      const char* const begin = room[i].data();
      const bool within =
          begin >= exact.data() && begin + room[i].size() <= exact.data() + reading.used;
      if (!within) Fail("a word from somewhere else");
      command.emplace_back(room[i]);
    }
    outcome_.commands.push_back(std::move(command));
    input_.erase(0, reading.used);
  }

  CommandReader reader_;
  std::string input_;
  Outcome outcome_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  weir::fuzz::ReadWholeAndInPieces<Reading>(data[0], weir::fuzz::BehindFirst(data, size));
  return 0;
}
