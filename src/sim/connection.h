// One connection of a simulated network: two directions of bytes, and the stream at either end.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/byte_buffer.h"
#include "net/loop.h"
#include "sim/sim_loop.h"
#include "sim/world.h"

namespace weir::sim {

struct Weather;

// Kept by its streams and by what is under way.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  enum Side : std::uint8_t { kClient = 0, kServer = 1 };
  struct Place {
    World& world;
    Random& random;
    const Weather& weather;           // As it is, and as it becomes.
    std::size_t& bytes_before_reset;  // Of what goes to clients; 0: no reset is planned.
  };

  Connection(const Place& place, SimLoop& client);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The client's end is there while the connection is being made, the server's once it is.
  std::unique_ptr<Stream> MakeStream(Side side, std::string peer);
  void SetServer(SimLoop& loop) { ends_[kServer].loop = &loop; }
  bool IsGivenUp(Side side) const noexcept { return ends_[side].is_closed; }
  bool IsOpen() const noexcept { return !ends_[kClient].is_closed && !ends_[kClient].is_broken; }

  // Both ends learn of it.
  void Break(std::string_view why);
  // The weather has changed.
  void OnWeather();

 private:
  friend class SimStream;

  struct Segment {
    std::string bytes;
    Duration sent;
    Duration arrives;
  };
  // From one end to the other.
  struct Direction {
    std::deque<Segment> under_way;
    std::size_t bytes_under_way = 0;
    ByteBuffer arrived;
    bool is_finished = false;  // Its sender will send no more,
    bool end_arrived = false;  // and its receiver knows.
    bool is_lost = false;      // Nothing will ever arrive.
    Duration lost_since{0};
    Duration last_arrival{0};
    World::EventId next{};
    bool is_planned = false;
  };
  struct End {
    SimLoop* loop = nullptr;
    StreamHandler* handler = nullptr;
    std::span<char> room{};
    bool is_closed = false;
    bool is_broken = false;
    bool broken_told = false;
    bool hang_up_told = false;
    bool awaits_writable = false;
    bool is_polled = false;
    Duration user_timeout{0};
    std::string why{};
  };

  std::optional<std::size_t> Write(Side from, std::string_view bytes);
  void Finish(Side from);
  void Close(Side side);
  void Send(Side from, std::string_view bytes);
  // One that is empty says that there will be no more.
  void AddSegment(Side from, std::string_view bytes);
  bool IsStalled(Side from) const;
  bool Loses(Side from) const;
  std::size_t Room(Side from) const;
  void PlanArrival(Side from);
  void Arrive(Side from);
  // Whether the sender has waited for too long, now or later.
  void WatchAcknowledgement(Side from);
  void BreakEnd(Side side, std::string_view why);
  // Tells an end what there is to tell, in a turn of its loop.
  void Poll(Side side);
  void PollNow(Side side);
  static Side Other(Side side) { return side == kClient ? kServer : kClient; }

  const Place place_;
  std::array<Direction, 2> directions_;  // By sender.
  std::array<End, 2> ends_;
};

}  // namespace weir::sim
