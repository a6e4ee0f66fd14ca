// The world as those see it who must wait for it: time, timers and streams of bytes. One thread
// runs a loop and everything that belongs to it; nothing here is thread-safe but Loop::Post. Behind
// these interfaces is the operating system, or a simulation of it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <weir/result.h>
#include <weir/time.h>

#include "net/endpoint.h"

namespace weir {

// Told of what happens to a stream. It may end the stream from within, and itself with it.
class StreamHandler {
 public:
  // So many bytes were read into the room given to Stream::Read; none: the peer will send no more.
  virtual void OnRead(std::size_t count) noexcept = 0;
  // The same while nothing is being read: the peer will send no more than it has sent.
  virtual void OnHangUp() noexcept = 0;
  // What Stream::AwaitWritable asked for.
  virtual void OnWritable() noexcept = 0;
  // The connection is lost; nothing else will be told.
  virtual void OnBroken() noexcept = 0;

 protected:
  ~StreamHandler() = default;
};

// A connection. Ending it closes it, and its handler is told nothing more.
class Stream {
 public:
  virtual ~Stream() = default;

  // To be set before anything else is called, and to stay as long as the stream.
  virtual void SetHandler(StreamHandler& handler) noexcept = 0;

  // Reads once, when there is something: OnRead. The room stays until then, and is written to only
  // right before, so that streams of one thread may share it; another read before that takes the
  // place of the first.
  virtual void Read(std::span<char> room) noexcept = 0;
  // Sends as much as goes at once, and says how much that was; none if the connection is lost, of
  // which the handler is not told then. What did not go must come first the next time: it may have
  // been encrypted.
  virtual std::optional<std::size_t> Write(std::string_view bytes) noexcept = 0;
  // OnWritable as soon as more can be written.
  virtual void AwaitWritable() noexcept = 0;
  // Tells the peer that nothing more will be sent. Reading goes on.
  virtual void FinishWriting() noexcept = 0;

  // The connection is lost once what was sent has not been acknowledged for so long.
  virtual void SetUserTimeout(Duration longest) noexcept = 0;

  // Once the connection is lost: why, if that is known. Stays as long as the stream.
  virtual std::string_view why_broken() const noexcept { return {}; }

  // The other end's address without its port: 203.0.113.9, 2001:db8::1; empty on a unix socket.
  virtual std::string_view peer() const noexcept = 0;

  // Whether both sides have begun to agree on how to talk, and nothing can be said yet.
  virtual bool is_agreeing() const noexcept { return false; }

  // Bytes of memory that it holds for what is on its way.
  virtual std::size_t buffered() const noexcept { return 0; }
};

// Ending it stops it.
class Timer {
 public:
  virtual ~Timer() = default;

  // Due once, this long from now; a start before that one is forgotten.
  virtual void Start(Duration after) = 0;
  virtual void Stop() noexcept = 0;
};

// Told that a turn of the loop has handled all there was: for those who gather what a turn brings,
// and send it in one piece.
class TurnEnd {
 public:
  virtual void OnTurnEnd() noexcept = 0;

 protected:
  ~TurnEnd() = default;
};

class Loop {
 public:
  virtual ~Loop() = default;

  // The time of this turn, which handles what has happened since the last: read once, when it is
  // first asked for, so that everything that came in one piece is decided as of one moment.
  virtual Now now() noexcept = 0;
  // The time as of this very moment, for measuring how long something took.
  virtual Now ReadClock() const noexcept = 0;

  // Runs the task in a later turn. May be called from any thread.
  virtual void Post(std::function<void()> task) = 0;

  // Once, at the end of this turn; asked for twice, still once. What it does may add others, who
  // are called before the loop waits again.
  virtual void AtTurnEnd(TurnEnd& told) = 0;
  // To be called by one that ends while it may still be told.
  virtual void ForgetTurnEnd(TurnEnd& told) noexcept = 0;

  virtual std::unique_ptr<Timer> MakeTimer(std::function<void()> on_due) = 0;

  // The stream may be used, and has a handler, once `connected` was called with no error. Ending
  // it before that ends the attempt. Names are looked up on another thread.
  virtual std::unique_ptr<Stream> Connect(const Endpoint& endpoint,
                                          std::function<void(Result<void>)> connected) = 0;
};

}  // namespace weir
