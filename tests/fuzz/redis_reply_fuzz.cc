// A server that says anything at all: whatever it replies, in whatever pieces, every group is told
// something, once, and nothing breaks.
//
// The first byte says how the layout is and where the bytes are cut; the rest is what the server
// sends once it has been greeted, or in place of that.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <weir/limit.h>

#include "in_pieces.h"
#include "net/loop_under_test.h"
#include "store/redis/redis_store.h"

namespace {

using weir::fuzz::Fail;

constexpr std::string_view kGreeting = "+OK\r\n$20\r\nredis_version:7.0.15\r\n";
constexpr std::size_t kGroups = 6;

class Counting final : public weir::Completion {
 public:
  void OnDecided(weir::Group&) noexcept override { ++told; }
  std::size_t told = 0;
};

class Run {
 public:
  explicit Run(std::uint8_t shape) : shape_(shape) {
    settings_.layout = static_cast<weir::redis::Layout>(shape % 3);
    settings_.master_name = "m";
    settings_.sites.push_back({.endpoint = {.host = "a", .port = 1, .path = {}}});
    loop_.Advance(std::chrono::seconds(1));
  }

  void Do(std::string_view bytes) {
    weir::redis::Commons commons(settings_, {.seed = 1});
    {
      weir::redis::RedisStore store(loop_, settings_, hasher_, commons);
      loop_.Advance(weir::Duration(0));
      Submit(store);
      std::uint32_t random = shape_;
      for (int round = 0; round < 4 && !bytes.empty(); ++round) {
        AcceptAll();
        while (!bytes.empty() && !loop_.attempts.back()->far.closed) {
          random = random * 1'664'525 + 1'013'904'223;
          const std::size_t piece = std::min<std::size_t>(bytes.size(), 1 + (random >> 16) % 64);
          loop_.attempts.back()->far.Send(bytes.substr(0, piece));
          bytes.remove_prefix(piece);
          loop_.Turn();
        }
        loop_.Advance(std::chrono::milliseconds(60));
      }
      loop_.Advance(std::chrono::seconds(1));
    }
    if (completion_.told != kGroups) Fail("not every group was told once");
  }

 private:
  void AcceptAll() {
    for (std::size_t i = 0; i < loop_.attempts.size(); ++i) {
      if (!loop_.attempts[i]->pending()) continue;
      loop_.attempts[i]->Accept();
      loop_.Turn();
      if ((shape_ & 0x40) == 0) loop_.attempts[i]->far.Send(kGreeting);
      loop_.Turn();
    }
  }

  void Submit(weir::redis::RedisStore& store) {
    static constexpr std::array<std::string_view, kGroups> kKeys = {"a", "b", "c", "d", "e", "f"};
    for (std::size_t i = 0; i < kGroups; ++i) {
      for (std::size_t j = 0; j < 2; ++j) {
        weir::Charge& charge = charges_[i][j];
        charge.rule = "r";
        charge.key = kKeys[(i + j * (i % 3)) % kGroups];
        charge.hash = store.Hash(charge.key);
        charge.limit = &limit_;
      }
      groups_[i].charges = charges_[i];
      groups_[i].decisions = decisions_[i];
      if (i == 4) groups_[i].action = weir::Action::kReserve;
    }
    groups_[5].action = weir::Action::kCancel;
    groups_[5].reservation = weir::ReservationId{std::uint64_t{1} << 63};
    store.Submit(groups_, loop_.now(), completion_);
    loop_.Turn();
  }

  const std::uint8_t shape_;
  weir::redis::Settings settings_;
  weir::LoopUnderTest loop_;
  const weir::KeyHasher hasher_{weir::HashKind::kXxh3, 1};
  const weir::Limit limit_ = *weir::Limit::Parse("10/day")->ForSharedStore();
  std::array<std::array<weir::Charge, 2>, kGroups> charges_{};
  std::array<std::array<weir::Decision, 2>, kGroups> decisions_{};
  std::array<weir::Group, kGroups> groups_{};
  Counting completion_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Run(data[0]).Do(weir::fuzz::BehindFirst(data, size));
  return 0;
}
