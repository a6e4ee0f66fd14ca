// One thread of the service: a loop, the listeners it accepts from, and their connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <weir/clock.h>
#include <weir/engine.h>

#include "frontend/connection.h"
#include "frontend/gate.h"
#include "net/epoll_loop.h"
#include "net/listening_socket.h"
#include "net/tls_server.h"
#include "server/handshake_log.h"
#include "server/loop_witness.h"

namespace weir {

// What of an entrance may change while it is open.
struct Credentials {
  Access access{};
  std::shared_ptr<const TlsServerContext> tls{};  // None: in the clear.
};

// A way in: a protocol at an address.
struct Entrance {
  std::string protocol;  // http, resp
  Credentials credentials{};
  MakeProtocol make_protocol = nullptr;
  std::string_view refusal{};  // What somebody is told for whom there is no room, in the clear.
  HandshakeLog* handshake_log = nullptr;  // With TLS.
};

class Worker final : public ConnectionKeeper, public TurnEnd {
 public:
  Worker(Engine& engine, Clock& clock, Gate& gate, const ServiceState& state,
         std::shared_ptr<const Settings> settings);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // Before Start.
  void Add(const Entrance& entrance, ListeningSocket socket);

  // --- From the thread that made it. ---
  void Start();
  // What another policy says, that the engine has taken up.
  void Apply(std::shared_ptr<const Settings> settings);
  // By its entrance. For those who come from now on; tokens for all requests of HTTP.
  void Apply(std::size_t entrance, const Credentials& credentials);
  // Takes in no more connections and ends those there are, each as soon as it is quiet; at
  // `deadline` in any case.
  void Drain(Duration deadline);
  // Waits until it has drained.
  void Join();

  // Whether its loop has turned since this was last asked, or has come to its end as it should.
  // From one thread, whichever; once it was started.
  bool IsAlive();

  // By its entrance, in the order in which they were added. From any thread.
  const ListenerMetrics& metrics(std::size_t entrance) const noexcept {
    return doorways_[entrance]->metrics;
  }

  void Remove(std::uint64_t id) noexcept override;
  Connection* Find(std::uint64_t id) noexcept override;
  void CallAtTurnEnd(std::uint64_t id) override;
  void OnTurnEnd() noexcept override;
  std::shared_ptr<Mailbox> mailbox() noexcept override { return mailbox_; }

 private:
  struct Doorway {
    Doorway(Desk& desk, Entrance its_entrance)
        : entrance(std::move(its_entrance)),
          door{.desk = desk, .access = entrance.credentials.access, .metrics = metrics} {}
    Entrance entrance;
    ListenerMetrics metrics{};
    Door door;
    std::unique_ptr<Acceptor> acceptor{};
  };

  void Receive(Doorway& doorway, std::unique_ptr<Stream> stream);
  void TurnAway(Doorway& doorway, Stream& stream, Refusal why);
  std::unique_ptr<Stream> WithTls(Doorway& doorway, std::unique_ptr<Stream> stream);
  void Sweep();
  void BeginDrain(Duration deadline);
  void CloseDoors();

  Gate& gate_;
  EpollLoop loop_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>(loop_);
  std::unique_ptr<LoopEngine> questions_;
  Desk desk_;
  std::vector<std::unique_ptr<Doorway>> doorways_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<std::uint64_t> looked_at_;    // Kept for its memory,
  std::vector<std::uint64_t> at_turn_end_;  // likewise: those that want to be called,
  std::vector<std::uint64_t> called_;       // and those that are.
  std::uint64_t last_id_ = 0;
  bool draining_ = false;
  SteadyTime drain_deadline_{};
  std::unique_ptr<Timer> sweep_;
  LoopWitness witness_{loop_};
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

}  // namespace weir
