// The loop on the operating system's streams, by Boost.Asio: one thread, one reactor.
#pragma once

#include <functional>
#include <memory>

#include <weir/clock.h>

#include "net/listening_socket.h"
#include "net/loop.h"

namespace weir {

// Takes in connections until it is ended.
class Acceptor {
 public:
  virtual ~Acceptor() = default;

  // Takes in, at once, all who have connected by now.
  virtual void AcceptAll() noexcept = 0;
};

class AsioLoop final : public Loop {
 public:
  // The clock must outlive it.
  explicit AsioLoop(Clock& clock);
  ~AsioLoop() override;

  Now now() noexcept override;
  Now ReadClock() const noexcept override;
  void Post(std::function<void()> task) override;
  std::unique_ptr<Timer> MakeTimer(std::function<void()> on_due) override;
  std::unique_ptr<Stream> Connect(const Endpoint& endpoint,
                                  std::function<void(Result<void>)> connected) override;

  using Accepted = std::function<void(std::unique_ptr<Stream>)>;
  std::unique_ptr<Acceptor> Accept(ListeningSocket socket, Accepted accepted);

  // Handles events until Stop, which may be called from any thread. Everything made by the loop
  // must have ended before the loop does.
  void Run();
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir
