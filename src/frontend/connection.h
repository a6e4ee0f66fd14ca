// One connection: reads what comes, has its protocol answer, sends that, and watches over the
// bounds that keep a client from taking more than its share.
//
// It is read only as fast as it is answered: with too many replies held or too many bytes unsent it
// is not read until some have left. It ends when its peer is done, when its protocol says so, or
// when a deadline passes; replies are then sent to the end, and what still comes in is thrown away
// for a moment, because closing with bytes unread would take the last replies with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "frontend/gate.h"
#include "frontend/protocol.h"
#include "net/byte_buffer.h"
#include "net/loop.h"
#include "net/mailbox.h"

namespace weir {

class Connection;

// Who keeps connections, all on one thread.
class ConnectionKeeper {
 public:
  // Ends the connection.
  virtual void Remove(std::uint64_t id) noexcept = 0;
  // None if it has ended.
  virtual Connection* Find(std::uint64_t id) noexcept = 0;
  // Has Connection::OnTurnEnd called when this turn of the loop is over, unless it ends before. May
  // be asked for once at a time.
  virtual void CallAtTurnEnd(std::uint64_t id) = 0;
  // Leads to the thread of all of them.
  virtual std::shared_ptr<Mailbox> mailbox() noexcept = 0;

 protected:
  ~ConnectionKeeper() = default;
};

class Connection final : public StreamHandler, public Exchange {
 public:
  struct Surroundings {
    ConnectionKeeper& keeper;
    Gate& gate;
    Door& door;
  };
  // It has entered the gate, and leaves it at its end.
  Connection(const Surroundings& around, std::uint64_t id, std::unique_ptr<Stream> stream,
             MakeProtocol make_protocol);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  void Start();

  // Looks at the clock. May end the connection.
  void CheckDeadlines(SteadyTime now) noexcept;
  // No further requests are wanted. It ends once it has been quiet for a moment.
  void Drain(SteadyTime now) noexcept;
  // Sends the replies to all that was taken up, and ends. Whoever waits is told that there is no
  // more room for that.
  void EndDrain() noexcept;

  // Sends what was answered in this turn, in one piece, and goes on.
  void OnTurnEnd() noexcept;

  // --- What happens to the stream. ---
  void OnRead(std::size_t count) noexcept override;
  void OnHangUp() noexcept override;
  void OnWritable() noexcept override;
  void OnBroken() noexcept override;

  // --- What the protocol sees. ---
  Door& door() noexcept override { return around_.door; }
  Replies& replies() noexcept override { return replies_; }
  std::string_view peer() const noexcept override { return stream_->peer(); }
  bool draining() const noexcept override { return draining_ && !filled_; }
  void AskLater(const Question& question, const ReplyPlace& place) override;
  void CheckWaiting(const Request& request, const Ask& ask, Duration patience,
                    const ReplyPlace& place) override;
  void CheckQueueing(const Request& request, const Ask& ask, Duration hold,
                     const ReplyPlace& place) override;
  void CancelWaiting(const ReplyPlace& place) override;

 private:
  struct Wait {
    ReplyPlace place;
    WaitId id;
  };

  // These may end the connection, and say so: false if it has gone.
  [[nodiscard]] bool TakeUpInput() noexcept;
  [[nodiscard]] bool Flush() noexcept;
  bool ReadOn() noexcept;
  void GoOn() noexcept;
  void End() noexcept;
  void EndQuietly() noexcept;
  void Gone() noexcept { around_.keeper.Remove(id_); }
  bool Refuse(Refusal why) noexcept;

  void MakeRoom() noexcept;
  void GiveBackBuffers() noexcept;
  bool IsWaiting() const noexcept;
  bool AccountForBuffers() noexcept;
  void AdaptRoom(std::size_t count) noexcept;
  // What CheckThen calls when the wait of this place is over.
  Engine::WaitDone WhenDone(const ReplyPlace& place);
  void EndWaits() noexcept;
  void Waited(const ReplyPlace& place, const Told& told) noexcept;
  void Answered(const ReplyPlace& place, const Told& told) noexcept;

  const Surroundings around_;
  const std::uint64_t id_;
  std::unique_ptr<Stream> stream_;
  ByteBuffer input_;
  Replies replies_;
  std::unique_ptr<Protocol> protocol_;
  std::vector<Wait> waits_;

  bool lingering_ = false;  // All was sent; waiting for the peer to close.
  bool reading_ = false;    // Has asked for more.
  bool awaiting_writable_ = false;
  bool peer_done_ = false;  // Will send no more.
  bool filled_ = false;     // The last read took all it had room for: there may be more.
  bool full_ = false;       // Not read because of its replies.
  bool draining_ = false;
  bool asking_ = false;  // Who takes up input goes on by itself.
  bool called_at_turn_end_ = false;
  std::uint8_t small_reads_ = 0;  // In a row, that would have fitted the smallest buffer.
  std::size_t wants_ = 0;         // Bytes of the request that has been begun, if known.
  std::size_t accounted_ = 0;     // Bytes that the gate knows of.
  SteadyTime last_read_;
  SteadyTime request_began_;                  // Of the request that is not complete yet.
  std::optional<SteadyTime> unsent_since_{};  // That there is something, or was progress.
  std::size_t sent_ = 0;                      // Since then.
};

}  // namespace weir
