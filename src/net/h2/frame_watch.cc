#include "net/h2/frame_watch.h"

#include <algorithm>
#include <cstring>

namespace weir {
namespace {

// RFC 9113, section 6.
enum FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kResetStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
constexpr unsigned kEndHeaders = 0x4;

// Who sends as much as this at a time wants to get something across.
constexpr std::size_t kSmall = 256;
// As nghttp2 has it.
constexpr int kMostContinuations = 8;

}  // namespace

// Clients of good will stay far below: they send settings once, and a ping or a window update for
// some of the answers. A gateway whose requests run out of time resets each of them.
const std::array<H2FrameWatch::Allowance, kH2Abuses> H2FrameWatch::kAllowances = {{
    {.most = 1'000, .per_second = 100, .per_request = 1},                // kResets
    {.most = 100, .per_second = 2, .per_request = 0},                    // kSettings
    {.most = 200, .per_second = 10, .per_request = 1},                   // kPings
    {.most = 2'000, .per_second = 100, .per_request = 2},                // kWindows
    {.most = 500, .per_second = 10, .per_request = 1},                   // kPriorities
    {.most = 2'000, .per_second = 200, .per_request = 4},                // kSmallData
    {.most = 100, .per_second = 10, .per_request = 0},                   // kOthers
    {.most = 1 << 20, .per_second = 64 << 10, .per_request = 16 << 10},  // kHeaderBytes
    {.most = 0, .per_second = 0, .per_request = 0},                      // kContinuations
}};

H2FrameWatch::H2FrameWatch(const Bounds& bounds, SteadyTime now) noexcept
    : bounds_(bounds), began_(now) {
  for (std::size_t i = 0; i < kH2Abuses; ++i) left_[i] = kAllowances[i].most;
  refilled_.fill(now);
}

std::optional<H2Abuse> H2FrameWatch::See(std::string_view bytes, SteadyTime now) noexcept {
  while (!bytes.empty()) {
    if (skip_ > 0) {
      const std::size_t skipped = std::min(skip_, bytes.size());
      skip_ -= skipped;
      bytes.remove_prefix(skipped);
      continue;
    }
    if (head_size_ == 0 && !is_block_open_) began_ = now;
    const std::size_t taken = std::min(kHeadBytes - head_size_, bytes.size());
    std::memcpy(head_.data() + head_size_, bytes.data(), taken);
    head_size_ += taken;
    bytes.remove_prefix(taken);
    if (head_size_ < kHeadBytes) break;
    head_size_ = 0;
    if (const auto abuse = SeeFrame(now)) return abuse;
  }
  return std::nullopt;
}

std::optional<H2Abuse> H2FrameWatch::SeeFrame(SteadyTime now) noexcept {
  const std::size_t length =
      (std::size_t{head_[0]} << 16) | (std::size_t{head_[1]} << 8) | head_[2];
  skip_ = length;
  switch (head_[3]) {
    case kData:
      if (length >= kSmall) return std::nullopt;
      return Charge(H2Abuse::kSmallData, 1, now);
    case kHeaders:
      return SeeBlock(true, now);
    case kContinuation:
      return SeeBlock(false, now);
    case kPriority:
      return Charge(H2Abuse::kPriorities, 1, now);
    case kResetStream:
      return Charge(H2Abuse::kResets, 1, now);
    case kSettings:
      return Charge(H2Abuse::kSettings, 1, now);
    case kPing:
      return Charge(H2Abuse::kPings, 1, now);
    case kWindowUpdate:
      return Charge(H2Abuse::kWindows, 1, now);
    case kPushPromise:  // Ends the connection anyway.
      return std::nullopt;
    default:
      return Charge(H2Abuse::kOthers, 1, now);
  }
}

std::optional<H2Abuse> H2FrameWatch::SeeBlock(bool begins, SteadyTime now) noexcept {
  if (begins) {
    block_bytes_ = 0;
    continuations_ = 0;
  } else if (++continuations_ > kMostContinuations) {
    return H2Abuse::kContinuations;
  }
  block_bytes_ += skip_;
  if (block_bytes_ > bounds_.header_block) return H2Abuse::kContinuations;
  is_block_open_ = (head_[4] & kEndHeaders) == 0;
  if (is_block_open_) return std::nullopt;
  // A request takes some work however short it is.
  constexpr std::size_t kLeast = 256;
  return Charge(H2Abuse::kHeaderBytes, static_cast<std::int64_t>(std::max(block_bytes_, kLeast)),
                now);
}

std::optional<H2Abuse> H2FrameWatch::Charge(H2Abuse kind, std::int64_t amount,
                                            SteadyTime now) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  std::int64_t& left = left_[number];
  left -= amount;
  if (left >= 0) [[likely]]
    return std::nullopt;
  // Only now does it matter how much time has passed.
  const Allowance& allowance = kAllowances[number];
  const std::int64_t milliseconds =
      std::chrono::floor<std::chrono::milliseconds>(now - refilled_[number]).count();
  const std::int64_t most_milliseconds = 1'000 * (allowance.most + 1);
  left += std::min(std::min(milliseconds, most_milliseconds) * allowance.per_second / 1'000,
                   allowance.most);
  refilled_[number] = now;
  if (left < 0) return kind;
  return std::nullopt;
}

void H2FrameWatch::CreditRequest() noexcept {
  for (std::size_t i = 0; i < kH2Abuses; ++i) {
    left_[i] = std::min(left_[i] + kAllowances[i].per_request, kAllowances[i].most);
  }
}

}  // namespace weir
