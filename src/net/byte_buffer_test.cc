#include "net/byte_buffer.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

// Whatever is done to it in whatever order, it holds what a string would.
RC_GTEST_PROP(ByteBuffer, HoldsWhatAStringWould, ()) {
  ByteBuffer buffer;
  std::string model;
  for (int i = 0; i < 60; ++i) {
    const std::size_t size = *rc::gen::inRange<std::size_t>(0, 400);
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
        buffer.Compact();
        RC_ASSERT(buffer.free().size() == buffer.capacity() - model.size());
        break;
      case 1:
        buffer.SetCapacity(size);
        RC_ASSERT(buffer.capacity() == std::max(size, model.size()));
        break;
      case 2: {
        ByteBuffer moved(std::move(buffer));
        RC_ASSERT(buffer.empty() && buffer.capacity() == 0U);  // NOLINT(bugprone-use-after-move)
        buffer = std::move(moved);
        break;
      }
      case 3:
      case 4: {
        const std::size_t count = std::min(size, model.size());
        buffer.Consume(count);
        model.erase(0, count);
        break;
      }
      default: {
        const std::string text(size, static_cast<char>('a' + i % 26));
        buffer.Append(text);
        model += text;
        break;
      }
    }
    RC_ASSERT(std::string(buffer.view()) == model);
  }
}

TEST(ByteBuffer, UsesAgainTheRoomOfWhatWasConsumed) {
  ByteBuffer buffer;
  buffer.SetCapacity(256);
  buffer.Append(std::string(200, 'a'));
  buffer.Consume(150);
  buffer.Append(std::string(100, 'b'));
  EXPECT_EQ(buffer.capacity(), 256U);
  EXPECT_EQ(buffer.view(), std::string(50, 'a') + std::string(100, 'b'));
}

}  // namespace
}  // namespace weir
