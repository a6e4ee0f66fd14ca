// Replies read from any bytes: however these are put together, the same items and the same error
// come out, within the bounds; and what was read can be written and read back.
//
// The first byte says where the bytes are cut.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "in_pieces.h"
#include "net/resp/reply_reader.h"
#include "net/resp/writer.h"

namespace {

using weir::ByteBuffer;
using weir::fuzz::Fail;
using weir::resp::ReplyBounds;
using weir::resp::ReplyItem;
using weir::resp::ReplyReader;
using weir::resp::ReplyReading;
using weir::resp::ReplyWriter;
using weir::resp::Version;
using Kind = ReplyItem::Kind;

constexpr ReplyBounds kBounds{.depth = 4, .items = 64, .bytes = 256};

struct Item {
  Kind kind;
  bool ends_reply;
  std::size_t depth;
  std::size_t count;
  std::string text;
  std::int64_t integer;
  std::uint64_t number;  // Its bits, because one that is none equals nothing.

  friend bool operator==(const Item&, const Item&) = default;
};

struct Outcome {
  std::vector<Item> items{};
  std::string error{};

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class Reading {
 public:
  bool Take(std::string_view bytes) {
    input_ += bytes;
    while (true) {
      const std::vector<char> exact(input_.begin(), input_.end());
      const ReplyReading reading = reader_.Read({exact.data(), exact.size()});
      if (reading.kind == ReplyReading::Kind::kIncomplete) {
        if (reading.wants <= input_.size()) Fail("wants what it has");
        return true;
      }
      if (reading.kind == ReplyReading::Kind::kMalformed) {
        outcome_.error = reading.error;
        if (outcome_.error.empty()) Fail("an error without a word");
        return false;
      }
      Keep(reading, exact);
    }
  }
  const Outcome& outcome() const { return outcome_; }

 private:
  void Keep(const ReplyReading& reading, const std::vector<char>& exact) {
    const ReplyItem& item = reading.item;
    if (reading.used == 0 || reading.used > exact.size()) Fail("used what is not there");
    if (item.depth > kBounds.depth) Fail("deeper than it may be");
    if (item.count > kBounds.items) Fail("more items than there may be");
    if (item.text.size() > kBounds.bytes) Fail("longer than it may be");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &item.number, sizeof(bits));
    outcome_.items.push_back({.kind = item.kind,
                              .ends_reply = item.ends_reply,
                              .depth = item.depth,
                              .count = item.count,
                              .text = std::string(item.text),
                              .integer = item.integer,
                              .number = bits});
    input_.erase(0, reading.used);
  }

  ReplyReader reader_{kBounds};
  std::string input_;
  Outcome outcome_;
};

// False for the types that have no writer.
bool Write(const Item& item, ReplyWriter& writer) {
  double number = 0;
  std::memcpy(&number, &item.number, sizeof(number));
  switch (item.kind) {
    case Kind::kInteger:
      writer.Integer(item.integer);
      return true;
    case Kind::kBulk:
      writer.Bulk(item.text);
      return true;
    case Kind::kNull:
      writer.Null();
      return true;
    case Kind::kBoolean:
      writer.Boolean(item.integer == 1);
      return true;
    case Kind::kDouble:
      writer.Double(number);
      return !std::isnan(number);
    case Kind::kArray:
      writer.Array(item.count);
      return true;
    case Kind::kMap:
      writer.Map(item.count / 2);
      return true;
    case Kind::kSet:
      writer.Set(item.count);
      return true;
    case Kind::kPush:
      writer.Push(item.count);
      return true;
    case Kind::kSimple:
    case Kind::kError:
      for (const char c : item.text) {
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') return false;
      }
      item.kind == Kind::kSimple ? writer.Simple(item.text) : writer.Error(item.text);
      return true;
    default:
      return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Reading whole =
      weir::fuzz::ReadWholeAndInPieces<Reading>(data[0], weir::fuzz::BehindFirst(data, size));

  ByteBuffer out;
  ReplyWriter writer(out, Version::kResp3);
  for (const Item& item : whole.outcome().items) {
    if (!Write(item, writer)) return 0;
  }
  Reading again;
  again.Take(out.view());
  if (again.outcome().items != whole.outcome().items) Fail("written and read back, it is another");
  return 0;
}
