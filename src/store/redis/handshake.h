// What is said first on a connection: who we are, which database, what we are called, and what kind
// of server this is. All of it is sent at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/byte_buffer.h"
#include "net/resp/reply_reader.h"
#include "store/endpoint_report.h"
#include "store/redis/settings.h"

namespace weir::redis {

class Handshake {
 public:
  // A sentinel is asked for nothing but to let us in.
  Handshake(const Site& site, bool is_sentinel) : site_(site), is_sentinel_(is_sentinel) {}

  void Write(ByteBuffer& out);

  // Items of the replies. False if it makes no sense.
  bool Take(const resp::ReplyItem& item);
  bool is_done() const noexcept { return taken_ == steps_; }
  struct Refusal {
    StoreFault fault = StoreFault::kOther;
    std::string text{};
  };
  // Why the server will not have us; looked at when it is done.
  const std::optional<Refusal>& refusal() const noexcept { return refusal_; }
  // What INFO said; empty if that is forbidden.
  const std::string& info() const noexcept { return info_; }

 private:
  enum class Step : std::uint8_t { kAuth, kSelect, kName, kInfo, kPing };
  static constexpr std::size_t kMostSteps = 4;

  void OnError(Step step, std::string_view text);

  const Site& site_;
  const bool is_sentinel_;
  std::array<Step, kMostSteps> order_{};
  std::size_t steps_ = 0;
  std::size_t taken_ = 0;
  std::optional<Refusal> refusal_;
  std::string info_;
};

}  // namespace weir::redis
