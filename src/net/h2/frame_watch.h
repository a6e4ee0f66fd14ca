// Watches what kinds of frames a peer sends, before anything is done with them. All that an HTTP/2
// peer may send besides requests costs it next to nothing and the server some work, so each kind
// has an allowance: so many at once, some more every second, and some for each request that was
// answered. Who uses one up is cut off.
//
// Only the nine bytes at the head of each frame are looked at:
//
//   length (24) | type (8) | flags (8) | R | stream (31)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <weir/time.h>

namespace weir {

enum class H2Abuse : std::uint8_t {
  kResets,         // RST_STREAM, and errors that make us send one.
  kSettings,       // SETTINGS
  kPings,          // PING
  kWindows,        // WINDOW_UPDATE
  kPriorities,     // PRIORITY
  kSmallData,      // DATA with little or nothing in it: a call has one or two such frames.
  kOthers,         // Frames of unknown types, and GOAWAY.
  kHeaderBytes,    // Header blocks that led to no answer, by their bytes.
  kContinuations,  // CONTINUATION frames of one block, or bytes of it.
};
inline constexpr std::size_t kH2Abuses = 9;

class H2FrameWatch {
 public:
  struct Bounds {
    std::size_t header_block = std::size_t{16} << 10;  // Bytes of one, as they are sent.
  };
  H2FrameWatch(const Bounds& bounds, SteadyTime now) noexcept;

  // Looks at the bytes that come next, however they are cut. The first abuse in them, if any; then
  // they should not be used.
  std::optional<H2Abuse> See(std::string_view bytes, SteadyTime now) noexcept;
  // The same for what a peer made us do.
  std::optional<H2Abuse> Charge(H2Abuse kind, std::int64_t amount, SteadyTime now) noexcept;

  // A request was answered.
  void CreditRequest() noexcept;

  // Since when the peer has been sending the preface, one frame or one header block; none if it is
  // between two of them.
  std::optional<SteadyTime> amid_since() const noexcept {
    if (head_size_ == 0 && skip_ == 0 && !is_block_open_) return std::nullopt;
    return began_;
  }

 private:
  struct Allowance {
    std::int64_t most;
    std::int64_t per_second;
    std::int64_t per_request;
  };
  static const std::array<Allowance, kH2Abuses> kAllowances;
  static constexpr std::size_t kHeadBytes = 9;
  static constexpr std::size_t kPrefaceBytes = 24;

  std::optional<H2Abuse> SeeFrame(SteadyTime now) noexcept;
  std::optional<H2Abuse> SeeBlock(bool begins, SteadyTime now) noexcept;

  const Bounds bounds_;
  std::array<std::int64_t, kH2Abuses> left_{};
  std::array<SteadyTime, kH2Abuses> refilled_{};
  std::array<unsigned char, kHeadBytes> head_{};
  std::size_t head_size_ = 0;
  std::size_t skip_ = kPrefaceBytes;  // Bytes until the next frame.
  SteadyTime began_;                  // The frame, or the block that it belongs to.
  bool is_block_open_ = false;        // A header block goes on in the next frame.
  std::size_t block_bytes_ = 0;       // Of it.
  int continuations_ = 0;             // Of it.
};

}  // namespace weir
