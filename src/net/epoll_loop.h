// The loop on the operating system's streams: one thread, one epoll.
//
// Readiness is asked for once and holds until it is no longer wanted, so that a request costs one
// read, one write and its share of an epoll_wait, and nothing besides.
#pragma once

#include <functional>
#include <memory>

#include <weir/clock.h>

#include "net/listening_socket.h"
#include "net/loop.h"
#include "net/mailbox.h"
#include "net/reactor.h"

namespace weir {

// Takes in connections until it is ended.
class Acceptor {
 public:
  virtual ~Acceptor() = default;

  // Takes in, at once, all who have connected by now. From then on nobody can begin to connect; who
  // had begun already still can, until this is ended. Of a socket that somebody else keeps nobody
  // is taken in any more: they stay where they are.
  virtual void AcceptLast() noexcept = 0;
};

// Everything made by the loop must end before the loop does.
class EpollLoop final : public Loop {
 public:
  // The clock must outlive it.
  explicit EpollLoop(Clock& clock) : reactor_(clock) {}
  EpollLoop(const EpollLoop&) = delete;
  EpollLoop& operator=(const EpollLoop&) = delete;
  ~EpollLoop() override { mailbox_->Close(); }

  Now now() noexcept override { return reactor_.Time(); }
  Now ReadClock() const noexcept override { return reactor_.ReadClock(); }
  void Post(std::function<void()> task) override { reactor_.Post(std::move(task)); }
  void AtTurnEnd(TurnEnd& told) override { reactor_.AtTurnEnd(told); }
  void ForgetTurnEnd(TurnEnd& told) noexcept override { reactor_.ForgetTurnEnd(told); }
  std::unique_ptr<Timer> MakeTimer(std::function<void()> on_due) override;
  std::unique_ptr<Stream> Connect(const Endpoint& endpoint,
                                  std::function<void(Result<void>)> connected) override;

  using Accepted = std::function<void(std::unique_ptr<Stream>)>;
  std::unique_ptr<Acceptor> Accept(ListeningSocket socket, Accepted accepted);

  // Handles events until Stop, which may be called from any thread.
  void Run() { reactor_.Run(); }
  void Stop() noexcept { reactor_.Stop(); }

 private:
  Reactor reactor_;
  // For answers of threads that may outlast the loop.
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>(*this);
};

}  // namespace weir
