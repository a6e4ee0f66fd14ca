// Streams between the loops of a world, with everything that networks do to them: they are slow,
// cut what was sent into pieces, refuse, keep silent, stop half-way, and break. Within a stream
// bytes never change their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/loop.h"
#include "sim/sim_loop.h"
#include "sim/world.h"

namespace weir::sim {

class Connection;

// What it is like between one address and everybody else.
struct Weather {
  enum class Door : std::uint8_t {
    kOpen,
    kRefuses,  // Attempts to connect fail at once.
    kSilent,   // Nobody ever hears of them.
  };
  Door door = Door::kOpen;
  // How long bytes are under way, at random between these.
  Duration least_latency = std::chrono::microseconds(50);
  Duration most_latency = std::chrono::microseconds(150);
  // Of what is written, this part arrives in pieces of at most so many bytes.
  int split_percent = 0;
  std::size_t largest_piece = 1;
  // Nothing arrives. What was sent comes when this ends, unless its sender gave up before.
  bool stalls_to_server = false;
  bool stalls_to_client = false;
  // What is sent vanishes, and with it all that the same stream would have carried later.
  bool loses_to_server = false;
  bool loses_to_client = false;
  // How much may be under way or unread, for each direction.
  std::size_t window = 262'144;
};

class Acceptor {
 public:
  // On the listener's loop.
  virtual void OnAccept(std::unique_ptr<Stream> stream) = 0;

 protected:
  ~Acceptor() = default;
};

class Network {
 public:
  explicit Network(World& world) : world_(world), random_(world.random().Fork()) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();

  // Addresses are written as endpoints are: 10.0.0.1:6379. Who listens must stop before its end.
  void Listen(const std::string& address, SimLoop& loop, Acceptor& acceptor);
  void StopListening(const std::string& address);

  std::unique_ptr<Stream> Connect(SimLoop& loop, const Endpoint& endpoint,
                                  std::function<void(Result<void>)> connected);

  const Weather& WeatherAt(const std::string& address) { return places_[address].weather; }
  void SetWeather(const std::string& address, const Weather& weather);
  // Every connection there is lost, and what was under way with it.
  void Reset(const std::string& address);
  // The same once so many more bytes were sent to clients.
  void ResetAfter(const std::string& address, std::size_t bytes);

  std::size_t ConnectionsAt(const std::string& address);
  std::uint64_t AttemptsAt(const std::string& address) { return places_[address].attempts; }

 private:
  struct Place {
    Weather weather{};
    SimLoop* loop = nullptr;  // Null: nobody listens.
    Acceptor* acceptor = nullptr;
    std::vector<std::weak_ptr<Connection>> connections{};
    std::uint64_t attempts = 0;
    std::size_t bytes_before_reset = 0;  // 0: none is planned.
  };

  Duration Latency(const Weather& weather) {
    return random_.Between(weather.least_latency, weather.most_latency);
  }

  World& world_;
  Random random_;
  std::map<std::string, Place> places_;
};

}  // namespace weir::sim
