// What tests of the network and its servers share: a client that connects, sends, and keeps what
// came back.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/network.h"
#include "sim/sim_loop.h"

namespace weir::sim {

class CallerUnderTest final : public StreamHandler {
 public:
  CallerUnderTest(SimLoop& loop, std::string_view address) {
    stream = loop.Connect(*Endpoint::Parse(address), [this](Result<void> result) {
      connected = result.has_value();
      if (!result) return;
      stream->SetHandler(*this);
      stream->Read(room_);
    });
  }
  CallerUnderTest(const CallerUnderTest&) = delete;
  CallerUnderTest& operator=(const CallerUnderTest&) = delete;
  ~CallerUnderTest() = default;

  void OnRead(std::size_t count) noexcept override {
    ++reads;
    if (count == 0) {
      is_over = true;
      return;
    }
    received.append(room_.data(), count);
    stream->Read(room_);
  }
  void OnHangUp() noexcept override { is_over = true; }
  void OnWritable() noexcept override { is_writable = true; }
  void OnBroken() noexcept override { is_broken = true; }

  std::string Take() { return std::exchange(received, {}); }

  std::unique_ptr<Stream> stream;
  std::optional<bool> connected;
  std::string received;
  int reads = 0;
  bool is_over = false;
  bool is_broken = false;
  bool is_writable = false;

 private:
  std::array<char, 4096> room_{};
};

}  // namespace weir::sim
