// What a protocol makes of the bytes of one connection. The connection reads, sends, waits and
// watches the clock; the protocol takes requests from bytes and puts replies in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <weir/engine.h>

#include "frontend/desk.h"
#include "frontend/replies.h"

namespace weir {

// Where a reply that comes later goes, and what its protocol must know to write it.
struct ReplyPlace {
  Replies::Ticket ticket{};
  std::uint64_t tag = 0;
};

// The side of a connection that its protocol sees. All of it stays as long as the protocol.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual Door& door() noexcept = 0;
  virtual Replies& replies() noexcept = 0;
  // The other end's address; empty on a unix socket.
  virtual std::string_view peer() const noexcept = 0;
  // The service is ending, and no more is known to come on this connection: it should not be used
  // for further requests.
  virtual bool draining() const noexcept = 0;

  // For a place that is held, or that the protocol has numbered itself: OnAnswered is called with
  // it once the answer is there, perhaps before this returns. A place may have several questions.
  // LoopEngine::Ask, if the desk has one.
  virtual void AskLater(const Question& question, const ReplyPlace& place) = 0;
  // Engine::CheckThen.
  virtual void CheckWaiting(const Request& request, const Ask& ask, Duration patience,
                            const ReplyPlace& place) = 0;
  // The same for one that waits for queues only.
  virtual void CheckQueueing(const Request& request, const Ask& ask, Duration hold,
                             const ReplyPlace& place) = 0;
  // Nobody wants to know the answer any more; OnAnswered may be called all the same.
  virtual void CancelWaiting(const ReplyPlace& place) = 0;
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  struct Progress {
    std::size_t used = 0;       // Bytes from the beginning of the input that are done with.
    std::size_t wants = 0;      // How many bytes the next request will have, if that is known.
    std::uint32_t decided = 0;  // How many decisions were made: for the metric of their time.
  };
  // Takes up the requests that are complete, until there are none or the replies are full. What is
  // not used is there again, at the beginning of the next call. The bytes may be changed. When
  // framing is lost, answers with the protocol's error and has the connection close.
  virtual Progress OnInput(std::span<char> input) noexcept = 0;

  // Fills the place, if this was the last answer it needed.
  virtual void OnAnswered(const ReplyPlace& place, const Told& told) noexcept = 0;

  // A request was begun and not completed in time, or was too large: what to say before the
  // connection is closed, if anything.
  virtual void OnTimeout() noexcept = 0;

  // Every now and then, for those who watch a clock of their own. They may write replies, or have
  // the connection close.
  virtual void OnSweep(SteadyTime /*now*/) noexcept {}
  // The connection ends, because it was quiet for long enough: for a farewell.
  virtual void OnEnding() noexcept {}
  // The peer asks nothing, and waits to be told something all the same: it is not idle.
  virtual bool IsListenedTo() noexcept { return false; }
  // Whether a request is not complete, or an answer has not left, of which the connection cannot
  // know: the end of the service waits for it.
  virtual bool IsAmid() const noexcept { return false; }
  // Bytes that it holds for requests and replies.
  virtual std::size_t held_bytes() const noexcept { return 0; }
};

// Makes the protocol of a new connection. `exchange` outlives it.
using MakeProtocol = std::unique_ptr<Protocol> (*)(Exchange& exchange);

}  // namespace weir
