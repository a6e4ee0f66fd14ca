// Commands as clients send them, taken from bytes without copying any:
//
//   *2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n     an array of texts with their lengths
//   ECHO "hello\x21"\r\n                    or one line of words, as people type it
//
// Lengths are looked at as soon as they are declared, so that nobody has to wait for, or keep, what
// is too large anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::resp {

struct CommandBounds {
  std::size_t arguments = 1024;  // The name of the command included.
  std::size_t bytes = 65'536;    // As sent, lengths and line ends included.
};

struct CommandReading {
  enum class Kind : std::uint8_t {
    kCommand,
    kIncomplete,  // Come again with more bytes, these included.
    kNoRoom,      // Come again with the same bytes and room for `bounds.arguments`.
    kMalformed,   // Where the next command begins is not known any more:
    kTooLarge,    // nothing further can be read.
  };
  enum class Problem : std::uint8_t {
    kNone,
    kCount,
    kLength,
    kNoDollar,
    kNoLineEnd,
    kQuotes,
    kTooManyArguments,
    kTooManyBytes,
  };

  Kind kind = Kind::kIncomplete;
  Problem problem = Problem::kNone;
  char got = 0;               // kNoDollar: what was there instead.
  std::size_t used = 0;       // kCommand: how many bytes it had.
  std::size_t arguments = 0;  // kCommand: how many are in the room. None: there is nothing to do.
  std::size_t wants = 0;      // kIncomplete: the least the whole command can have.
};

// "Protocol error: invalid multibulk length": what Redis says, where it says anything.
std::string ErrorText(const CommandReading& reading);

// For one connection. Remembers how far it got with a command of which only a part is there, so
// that the part is not read over and over.
class CommandReader {
 public:
  // The command at the beginning of `input`, its words in `room`; they point into the input. A line
  // with quotes is changed in place, so what was read as a command must not be read again.
  CommandReading Read(std::span<char> input, std::span<std::string_view> room,
                      const CommandBounds& bounds) noexcept;

 private:
  struct Walk;

  CommandReading ReadArray(std::string_view input, std::span<std::string_view> room,
                           const CommandBounds& bounds) noexcept;
  CommandReading ReadLine(std::span<char> input, std::span<std::string_view> room,
                          const CommandBounds& bounds) noexcept;
  // An array that was incomplete before: first whether it is complete now.
  CommandReading Resume(std::string_view input, std::span<std::string_view> room,
                        const CommandBounds& bounds) noexcept;
  CommandReading Ended(const Walk& walk, std::string_view input,
                       const CommandBounds& bounds) noexcept;
  CommandReading Incomplete(std::size_t wants, std::string_view input,
                            const CommandBounds& bounds) noexcept;
  void Forget() noexcept { scanned_ = left_ = awaited_ = wants_ = 0; }

  // Of the command that is incomplete: so many bytes were found to be right,
  std::size_t scanned_ = 0;
  std::size_t left_ = 0;     // so many arguments are still to come behind them,
  std::size_t awaited_ = 0;  // nothing new can be seen before there are so many,
  std::size_t wants_ = 0;    // and the whole has at least so many.
};

}  // namespace weir::resp
