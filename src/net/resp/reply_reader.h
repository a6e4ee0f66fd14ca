// Replies as servers send them, RESP2 and RESP3, item by item: a text or a number, or the beginning
// of an array, map, set, push or attribute, whose items follow one by one.
//
// The depth, the number of items and the length of each are bounded, and looked at as soon as they
// are declared. Types that are streamed without a length are refused: no server sends them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::resp {

struct ReplyBounds {
  static constexpr std::size_t kMostDepth = 16;

  std::size_t depth = 8;           // Of arrays within arrays; at most kMostDepth.
  std::size_t items = 65'536;      // In one reply, all depths together.
  std::size_t bytes = 16'777'216;  // Of one item.
};

struct ReplyItem {
  enum class Kind : std::uint8_t {
    kSimple,     // text
    kError,      // text, whether short or with a length
    kInteger,    // integer
    kBulk,       // text
    kNull,       //
    kBoolean,    // integer: 1 or 0
    kDouble,     // number
    kBigNumber,  // text: digits, perhaps with a sign
    kVerbatim,   // text: three characters for its format, a colon, and what is meant
    // With `count` items right inside, which follow; a pair of a map is two.
    kArray,
    kMap,
    kSet,
    kPush,       // Not a reply to anything; never inside another.
    kAttribute,  // Says something about the item behind it, and is none itself.
  };

  Kind kind = Kind::kNull;
  bool ends_reply = false;  // The next item belongs to another reply.
  std::size_t depth = 0;    // How many others it lies in.
  std::size_t count = 0;
  std::string_view text{};
  std::int64_t integer = 0;
  double number = 0;
};

struct ReplyReading {
  enum class Kind : std::uint8_t {
    kItem,
    kIncomplete,  // Come again with more bytes, those that were not used included.
    kMalformed,   // `error` says why. Nothing further can be read.
  };

  Kind kind = Kind::kIncomplete;
  std::size_t used = 0;      // kItem: how many bytes it had.
  std::size_t wants = 0;     // kIncomplete: the least the item can have.
  std::string_view error{};  // kMalformed.
  ReplyItem item{};
};

// For one connection.
class ReplyReader {
 public:
  explicit ReplyReader(const ReplyBounds& bounds = {}) noexcept : bounds_(bounds) {}

  // The item at the beginning of `input`; texts point into it.
  ReplyReading Read(std::string_view input) noexcept;

 private:
  struct Open {
    std::size_t left;  // Items to come in it.
    bool is_attribute;
  };

  ReplyReading ReadLineItem(char type, std::string_view line) noexcept;
  ReplyReading ReadText(char type, std::string_view line, std::string_view input) noexcept;
  ReplyReading BeginGroup(char type, std::string_view line) noexcept;
  ReplyReading Ended(ReplyReading reading, std::size_t used) noexcept;
  // An item came to its end, and perhaps what it lay in. True if the reply has.
  bool EndItem() noexcept;

  ReplyBounds bounds_;
  std::array<Open, ReplyBounds::kMostDepth> open_{};
  std::size_t depth_ = 0;
  std::size_t items_ = 0;    // Of this reply, those that were declared included.
  std::size_t scanned_ = 0;  // Bytes of an incomplete line in which there is no line end.
};

}  // namespace weir::resp
