// Requests as a browser sends them through a proxy: of a million users at a million addresses, to
// 256 areas of an API.
//
//   GET /api/v1/area17/83921/items?page=3
//
// An area is asked for in one of four ways, so that rules of different kinds can be about it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/identity.h>
#include <weir/request.h>

#include "harness/keys.h"

namespace weir::bench {

inline constexpr std::size_t kAreas = 256;
inline constexpr std::uint64_t kUsers = 1'000'000;

enum class AreaKind : std::uint8_t {
  kList,    // GET /api/v1/areaN/list
  kItem,    // GET /api/v1/areaN/ID
  kBelow,   // POST /api/v1/areaN/ID/items/ID
  kClient,  // PUT /api/v1/areaN/ID/items, with X-Client: appN
};
constexpr AreaKind KindOf(std::size_t area) { return static_cast<AreaKind>(area % 4); }

inline constexpr std::string_view kHost = "api.example.org";
inline constexpr std::string_view kProxy = "10.0.0.7";

// Texts of addresses, three quarters of them IPv4, in the order in which requests come from them.
class AddressSequence {
 public:
  explicit AddressSequence(std::size_t length);
  std::string_view operator[](std::size_t at) const noexcept {
    return {texts_[at].data(), sizes_[at]};
  }

 private:
  std::vector<std::array<char, 40>> texts_;
  std::vector<std::uint8_t> sizes_;
};

// One request after the other, without end; each refers to memory of its own until the same comes
// again. User and address are others every time, of the rest there are kShapes.
class Requests {
 public:
  static constexpr std::size_t kShapes = 512;
  static constexpr std::size_t kLength = std::size_t{1} << 21;  // Then they are the same again.

  Requests();

  const Request& Next() noexcept { return NextShape().request; }
  // The same, as it came in over a socket.
  const Incoming& NextIncoming() noexcept { return NextShape().incoming; }

 private:
  static constexpr std::size_t kHeaders = 10;
  static constexpr std::size_t kForwardedFor = 8;
  static constexpr std::size_t kUserId = 9;

  // All that a request is, side by side, and few enough for the second cache: a server has just
  // read a request when it asks.
  struct Shape {
    Request request{};
    Incoming incoming{};
    std::array<NamedValue, kHeaders> headers{};
    std::array<NamedValue, 2> cookies{};
    std::array<NamedValue, 1> query{};
    std::array<char, 128> text{};  // What is different from request to request.
    std::size_t used = 0;

    std::string_view Keep(std::string_view part);
  };

  static void Fill(std::size_t number, Shape& shape);
  Shape& NextShape() noexcept {
    Shape& shape = shapes_[at_ % kShapes];
    const std::string_view user = users_[at_];
    const std::string_view address = addresses_[at_];
    shape.request.user = shape.headers[kUserId].value = user;
    shape.request.ip = shape.headers[kForwardedFor].value = address;
    at_ = (at_ + 1) % kLength;
    return shape;
  }

  KeySequence users_ = KeySequence::Drawn(Spread::kUniform, kUsers, kLength);
  AddressSequence addresses_{kLength};
  std::vector<Shape> shapes_ = std::vector<Shape>(kShapes);
  std::size_t at_ = 0;
};

}  // namespace weir::bench
