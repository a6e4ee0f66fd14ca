// One connection to a server: calls go out one behind the other without waiting, and replies come
// back in the same order, which is all that tells whose they are.
//
// A call that has been given up keeps its place: its reply is swallowed when it comes. Replies are
// not trusted: whatever makes no sense ends the connection.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/byte_buffer.h"
#include "net/loop.h"
#include "net/resp/reply_reader.h"
#include "store/redis/call.h"
#include "store/redis/handshake.h"
#include "store/redis/settings.h"

namespace weir::redis {

// Belongs to the loop's thread. Its owner may close it from within what it is told, but not end it.
class Connection final : private StreamHandler, private TurnEnd {
 public:
  class Owner {
   public:
    virtual void OnReady(Connection& connection) noexcept = 0;
    virtual void OnAnswered(Connection& connection, std::unique_ptr<Call> call,
                            Duration took) noexcept = 0;
    // `number` is how many had been sent before it.
    virtual void OnErrorReply(Connection& connection, std::unique_ptr<Call> call,
                              std::uint64_t number, std::string_view text,
                              Duration took) noexcept = 0;
    // All replies of a read were told.
    virtual void OnCaughtUp(Connection& connection) noexcept = 0;
    // It was never made, or is lost; it is over. Not told by Close.
    virtual void OnOver(Connection& connection, StoreFault fault, Error error) noexcept = 0;

   protected:
    ~Owner() = default;
  };
  struct Options {
    Duration timeout{};
    bool is_sentinel = false;
  };

  // Begins to connect. All must outlive it.
  Connection(Loop& loop, const Site& site, const Options& options, Owner& owner);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  bool is_ready() const noexcept { return state_ == State::kReady; }
  bool is_over() const noexcept { return state_ == State::kOver; }
  const std::string& info() const noexcept { return handshake_.info(); }

  // What the server's clock says now. Time is told from it by the steady clock: what this machine's
  // calendar says has no part in it.
  void NoteServerTime(WallTime time) noexcept;

  // Ready: the call leaves at the end of this turn.
  void Send(std::unique_ptr<Call> call);
  // Those that have no reply yet, given up or not.
  std::size_t in_flight() const noexcept { return in_flight_.size(); }
  // How many wait for what was sent.
  std::uint64_t load() const noexcept { return load_; }
  // The number of the last call that was sent with the text of a script.
  std::uint64_t last_text() const noexcept { return last_text_; }

  // Takes out those whose time is up; their replies will be swallowed.
  void TakeExpired(SteadyTime now, std::vector<std::unique_ptr<Call>>& expired);
  // The earliest deadline of those that are waited for.
  std::optional<SteadyTime> NextDeadline() const noexcept;
  // When the oldest that has no reply was sent.
  std::optional<SteadyTime> OldestSent() const noexcept;

  // Ends it, and hands over those that are waited for.
  std::vector<std::unique_ptr<Call>> Close() noexcept;

 private:
  enum class State : std::uint8_t { kConnecting, kHandshake, kReady, kOver };
  struct InFlight {
    std::unique_ptr<Call> call;  // None: its reply is of no interest.
    SteadyTime sent;
    std::uint64_t number;
  };

  // StreamHandler
  void OnRead(std::size_t count) noexcept override;
  void OnHangUp() noexcept override { Lose("closed by the server"); }
  void OnWritable() noexcept override;
  void OnBroken() noexcept override { Lose("connection lost"); }
  // TurnEnd
  void OnTurnEnd() noexcept override { Flush(); }

  // The server's time, or this machine's until it is known.
  WallTime ServerTime() noexcept;
  void OnConnected(const Result<void>& connected);
  void ReadOn();
  void Flush();
  // Nobody waits for it any more.
  std::unique_ptr<Call> TakeOut(InFlight& one) noexcept;
  // Each is false once the connection is over.
  bool TakeItems();
  bool TakeItem(const resp::ReplyItem& item);
  bool EndHandshake();
  bool Fail(StoreFault fault, std::string_view why);
  void Lose(std::string_view why);

  Loop& loop_;
  const Options options_;
  Owner& owner_;
  State state_ = State::kConnecting;
  Handshake handshake_;
  std::unique_ptr<Stream> stream_;
  resp::ReplyReader reader_;
  ByteBuffer in_;
  ByteBuffer out_;
  bool is_blocked_ = false;  // Waits until it may write again.
  std::deque<InFlight> in_flight_;
  std::uint64_t load_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t last_text_ = 0;
  // The server's clock, and when it was so by the steady one.
  struct ServerClock {
    WallTime time;
    SteadyTime at;
  };
  std::optional<ServerClock> server_clock_;
};

}  // namespace weir::redis
