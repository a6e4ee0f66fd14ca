#include "sim/network.h"

#include <utility>

#include "sim/connection.h"

namespace weir::sim {

Network::~Network() = default;

void Network::Listen(const std::string& address, SimLoop& loop, Acceptor& acceptor) {
  Place& place = places_[address];
  place.loop = &loop;
  place.acceptor = &acceptor;
}

void Network::StopListening(const std::string& address) {
  Place& place = places_[address];
  place.loop = nullptr;
  place.acceptor = nullptr;
}

std::unique_ptr<Stream> Network::Connect(SimLoop& loop, const Endpoint& endpoint,
                                         std::function<void(Result<void>)> connected) {
  const std::string address = endpoint.ToString();
  Place& place = places_[address];
  ++place.attempts;
  auto connection = std::make_shared<Connection>(
      Connection::Place{world_, random_, place.weather, place.bytes_before_reset}, loop);
  std::unique_ptr<Stream> stream = connection->MakeStream(Connection::kClient, endpoint.host);
  // The question takes one way, and so does the answer.
  const Duration way = Latency(place.weather);
  world_.After(
      way, [this, &place, &loop, connection, address, way, connected = std::move(connected)] {
        const Weather& weather = place.weather;
        if (connection->IsGivenUp(Connection::kClient)) return;
        if (weather.door == Weather::Door::kSilent || weather.stalls_to_server ||
            weather.stalls_to_client || weather.loses_to_server || weather.loses_to_client) {
          return;
        }
        const bool refused = place.loop == nullptr || weather.door == Weather::Door::kRefuses;
        if (!refused) {
          std::erase_if(place.connections,
                        [](const auto& weak) { return weak.expired() || !weak.lock()->IsOpen(); });
          place.connections.push_back(connection);
          connection->SetServer(*place.loop);
          // Whoever stopped listening meanwhile has nothing to do with it.
          place.loop->Ready([&place, acceptor = place.acceptor, connection] {
            if (place.acceptor != acceptor) return connection->Break("connection reset by peer");
            acceptor->OnAccept(connection->MakeStream(Connection::kServer, "10.255.0.1"));
          });
        }
        world_.After(way, [&loop, connection, address, connected, refused] {
          if (connection->IsGivenUp(Connection::kClient)) return;
          loop.Ready([connection, address, connected, refused] {
            if (connection->IsGivenUp(Connection::kClient)) return;
            if (!refused) return connected({});
            connected(std::unexpected(
                Error{.code = ErrorCode::kOverloaded,
                      .message = "cannot connect to " + address + ": Connection refused"}));
          });
        });
      });
  return stream;
}

void Network::SetWeather(const std::string& address, const Weather& weather) {
  Place& place = places_[address];
  place.weather = weather;
  for (const std::weak_ptr<Connection>& weak : place.connections) {
    if (const std::shared_ptr<Connection> connection = weak.lock()) connection->OnWeather();
  }
}

void Network::Reset(const std::string& address) {
  for (const std::weak_ptr<Connection>& weak : std::exchange(places_[address].connections, {})) {
    if (const std::shared_ptr<Connection> connection = weak.lock()) {
      connection->Break("connection reset by peer");
    }
  }
}

void Network::ResetAfter(const std::string& address, std::size_t bytes) {
  places_[address].bytes_before_reset = bytes;
}

std::size_t Network::ConnectionsAt(const std::string& address) {
  std::size_t count = 0;
  for (const std::weak_ptr<Connection>& weak : places_[address].connections) {
    const std::shared_ptr<Connection> connection = weak.lock();
    if (connection != nullptr && connection->IsOpen()) ++count;
  }
  return count;
}

}  // namespace weir::sim
