// threads
#include "engine/versions.h"

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

// Knows how many of it there are, and whether it is whole.
class Counted {
 public:
  Counted(int number, std::atomic<int>& alive) : alive_(alive) {
    ++alive_;
    numbers_.fill(number);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    numbers_.fill(-1);
    --alive_;
  }

  // The number, or -1 if it is a mixture or was ended.
  int Number() const {
    for (const int number : numbers_) {
      if (number != numbers_.front()) return -1;
    }
    return numbers_.front();
  }

 private:
  std::array<int, 64> numbers_;
  std::atomic<int>& alive_;
};

class VersionsTest : public testing::Test {
 protected:
  std::unique_ptr<const Counted> Make(int number) {
    return std::make_unique<const Counted>(number, alive_);
  }
  std::atomic<int> alive_{0};
};

TEST_F(VersionsTest, ShowTheLatest) {
  Versions<Counted> versions(Make(1));
  EXPECT_EQ(versions.Read()->Number(), 1);
  versions.Replace(Make(2));
  EXPECT_EQ(versions.Read()->Number(), 2);
  EXPECT_EQ(versions.Current().Number(), 2);
}

TEST_F(VersionsTest, EndTheOldOneWhenNobodyReadsItAndTheLastWithThem) {
  {
    Versions<Counted> versions(Make(1));
    for (int i = 2; i < 100; ++i) {
      versions.Replace(Make(i));
      EXPECT_EQ(alive_, 1);
    }
  }
  EXPECT_EQ(alive_, 0);
}

TEST_F(VersionsTest, KeepWhatIsBeingReadUntilTheReaderIsDone) {
  Versions<Counted> versions(Make(1));
  std::atomic<bool> replaced{false};
  std::jthread writer;
  {
    const auto reading = versions.Read();
    writer = std::jthread([&] {
      versions.Replace(Make(2));
      replaced = true;
    });
    while (versions.Read()->Number() != 2) std::this_thread::yield();
    for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
    EXPECT_FALSE(replaced);
    EXPECT_EQ(reading->Number(), 1);
    EXPECT_EQ(alive_, 2);
  }
  writer.join();
  EXPECT_TRUE(replaced);
  EXPECT_EQ(alive_, 1);
}

TEST_F(VersionsTest, MayBeReadSeveralTimesAtOnceByOneThread) {
  Versions<Counted> versions(Make(1));
  const auto outer = versions.Read();
  const auto inner = versions.Read();
  EXPECT_EQ(&*outer, &*inner);
}

// More threads than the readers have lines for, so that some share one.
TEST_F(VersionsTest, AreNeverSeenEndedOrMixedWhileAWriterReplacesThem) {
  constexpr int kReaders = 20;
  constexpr int kReplacements = 5'000;
  Versions<Counted> versions(Make(0));
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::atomic<std::int64_t> reads{0};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < kReaders; ++i) {
      readers.emplace_back([&] {
        int last = 0;
        while (!done) {
          {
            const auto reading = versions.Read();
            const int number = reading->Number();
            if (number < last || reading->Number() != number) ++wrong;
            last = number;
          }
          ++reads;
          // Not while it reads: on few cores the writer would wait for everybody's turn.
          std::this_thread::yield();
        }
      });
    }
    for (int i = 1; i <= kReplacements; ++i) {
      versions.Replace(Make(i));
      if (alive_ != 1) ++wrong;
      while (reads < 2 * i) std::this_thread::yield();
    }
    done = true;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(versions.Read()->Number(), kReplacements);
}

}  // namespace
}  // namespace weir
