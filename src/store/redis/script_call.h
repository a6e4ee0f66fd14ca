// One call of our script: what it is sent, and what its answer means. Groups that live on the same
// server may share a call; in a cluster, only those of the same slot.
//
//   call.Clear(); call.Add(group, now.wall); call.Write(out, Form::kDigest);
//   ... Take(item) for each item of the answer, then, while call.WantsAnotherRound():
//   call.Write(out, ...) and Take again; then ForEachGroup.
//
// A settlement (kCommit, kCancel) takes two rounds to the same server: which keys a reservation has
// is written in its record, and whoever removes the record settles it. Fail() between the rounds is
// right; repeating a second round that may have taken effect is not, as for any other call.
//
// A group whose keys are in several slots is given in parts, each a Group of its own. For kReserve
// and leases the parts share an id: draw it for the slot of the first part, then give each part
// ReservationInSlot(id, its slot), and the first also the slots of all others. Who commits or
// cancels it asks for the first with Part::claims: the first to do so decides for all parts how
// they are settled, and Claimed says how, and where the others are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/byte_buffer.h"
#include "net/resp/reply_reader.h"
#include "store/redis/key_state.h"
#include "store/redis/key_text.h"
#include "store/redis/reservation_record.h"
#include "store/store.h"

namespace weir::redis {

// The text of the script, as it is shipped, and its SHA-1 in hex.
std::string_view ScriptText() noexcept;
std::string_view ScriptDigest() noexcept;

// What `unlimited` and `deny` say, which need no server.
Decision DescribeUncounted(const Charge& charge) noexcept;

// Whether it ends a reservation rather than charges keys.
inline bool Settles(const Group& group) noexcept {
  return group.action == Action::kCommit || group.action == Action::kCancel;
}

// Used for one call after the other. Not thread-safe.
class ScriptCall {
 public:
  // Charges on keys. Beyond this a call would keep the server from others for too long.
  static constexpr std::size_t kMostKeys = 128;

  // A group that is part of a larger one: see above.
  struct Part {
    ReservationId id = ReservationId::kNone;  // None: draws one.
    std::span<const std::uint16_t> other_slots{};
    // kCommit, kCancel: a record that names other slots is not settled, but claimed.
    bool claims = false;
    // Its charges give back what a part took that was denied elsewhere, and this is when, by the
    // server's clock. What they are told is not to be relied on, nor is what others in the same
    // call are told about the same keys.
    std::optional<WallTime> taken_at{};
  };

  // A reservation in several slots.
  struct Claim {
    std::vector<std::uint16_t> other_slots{};  // Empty: it was in one only, and is settled.
    Settling settling{};                       // As whoever came first has it.
    bool is_ours = false;                      // It was us.
  };

  // Decides a group that needs no server: its limits count nothing, or it is malformed. False if
  // it needs one.
  static bool DecideAlone(Group& group) noexcept;

  // Empty again.
  void Clear() noexcept;
  // The group stays where it is until the call is over. All of its keys have the same slot, or all
  // groups of the call are on a server that does not care. `wall` is for calendar windows: see
  // SetWall. False if there is no room for it; there always is in an empty call.
  bool Add(Group& group, WallTime wall) noexcept { return Add(group, wall, Part{}); }
  bool Add(Group& group, WallTime wall, const Part& part) noexcept;
  // About when it is on the server, for all groups. The script is told of the calendar windows
  // around that time, and picks one by its own clock: all that is needed is the right window or one
  // beside it.
  void SetWall(WallTime wall) noexcept { wall_ = wall; }
  bool empty() const noexcept { return works_.empty(); }
  std::size_t groups() const noexcept { return works_.size(); }
  // Of the first key: where a cluster has to send it.
  std::uint16_t slot() const noexcept { return slot_; }

  // As a command: by its digest, or with the whole text for a server that does not know it yet.
  enum class Form : std::uint8_t { kDigest, kText };
  void Write(ByteBuffer& out, Form form) const;

  // The items of the answer, one after the other, unless it is an error. False if it makes no
  // sense; then no group is decided. After the last item all groups are, but for those that want
  // another round.
  bool Take(const resp::ReplyItem& item) noexcept;
  // After the last item: whether to Write and Take once more, to the same server.
  bool WantsAnotherRound() const noexcept { return wants_another_round_; }
  // After the last item: what the server's clock said.
  WallTime server_time() const noexcept { return moment_.wall; }
  // How many values were not ours, and were replaced.
  std::size_t corrupt() const noexcept { return corrupt_; }

  // In the order in which they were added: what a group with Part::claims found.
  const Claim& Claimed(std::size_t group) const noexcept { return works_[group].claim; }

  // Puts the error into every group that is not decided.
  void Fail(const Error& error) noexcept;
  // `sink` is void(Group&).
  template <typename Sink>
  void ForEachGroup(Sink&& sink) {
    for (Work& work : works_) sink(*work.group);
  }

 private:
  enum class Stage : std::uint8_t { kDecide, kReadRecord, kSettle, kDone };
  // Those that one command reads come first.
  enum class KeyUse : std::uint8_t { kPlain, kRecordToRead, kUndone, kLog, kRecord };

  struct Key {
    std::size_t begin;  // In key_bytes_.
    std::size_t size;
    KeyUse use;
    StateKind kind;
    std::uint16_t place;  // From 1 on, as the script counts.
    KeyState state;       // kPlain.
    std::string record;   // kRecordToRead.
    bool found;           // There was something to read.
  };
  // Charges of a group on the same key.
  struct Entry {
    const Limit* limit;
    StepRequest request;
    std::size_t key;
    std::optional<std::size_t> undone;  // The key of what was undone beside it.
    std::size_t charge;                 // The first of them.
    std::int64_t times;                 // How many.
    bool shadow;
    std::size_t text;  // In texts_, from 1 on; 0: not recorded.
    LogSight sight;
    SharedStep step;
    // kSettle.
    std::int64_t cost;
    std::string_view rule;
    std::uint64_t hash;
  };
  struct Work {
    Group* group;
    Stage stage;
    bool doomed;                       // Some limit is `deny`.
    bool claims;                       // As Part says,
    std::optional<WallTime> taken_at;  // likewise.
    std::size_t first;
    std::size_t count;
    std::size_t entry_of;  // In entry_of_, by charge.
    ReservationId id;
    std::size_t record;  // Key.
    std::size_t head;    // In texts_.
    Duration ttl;
    bool passed;
    Record found;
    Claim claim;

    // Whether the script has to do something for it, and says whether it did.
    bool is_asked() const noexcept {
      return stage == Stage::kDecide || stage == Stage::kSettle ||
             (stage == Stage::kReadRecord && claims);
    }
  };

  std::string_view TextOf(const Key& key) const noexcept {
    return std::string_view(key_bytes_).substr(key.begin, key.size);
  }
  // The key whose text has been put at the end of key_bytes_.
  std::size_t KeyFrom(std::size_t begin, KeyUse use, StateKind kind);
  void AddEntries(Work& work);
  void AddRecord(Work& work, const Part& part);
  void BeginNextRound();
  void AddSettlement(Work& work);

  void Encode() const;
  void EncodeShort() const;
  bool IsShort() const noexcept;
  // The one that has something to be decided, if there is no other, and it has one charge.
  const Work* OnlyCharge() const noexcept;
  void EncodeGroup(const Work& work) const;
  void SetPlaces() const;

  bool TakeHeader(const resp::ReplyItem& item) noexcept;
  bool TakeText(std::string_view text) noexcept;
  void SizeMasks() noexcept;
  void SetMoment(std::int64_t microseconds) noexcept;
  bool TakeNumber(std::size_t index, const resp::ReplyItem& item) noexcept;
  static bool TakeState(Key& key, const resp::ReplyItem& item) noexcept;
  bool TakeSight(const resp::ReplyItem& item) noexcept;
  bool TakeCorrupt(std::size_t index, const resp::ReplyItem& item) noexcept;
  void Finish();
  void Replay(Work& work);
  void ReplayEntry(Entry& entry, bool passed);
  SharedStep DoEntry(Entry& entry, const StepRequest& request, Effect effect);
  void Tell(Work& work);
  void TellSettled(Work& work);

  std::vector<Work> works_;
  mutable std::vector<Key> keys_;
  std::string key_bytes_;
  std::vector<std::uint16_t> key_table_;  // By hash; from 1 on.
  std::vector<Entry> entries_;
  std::vector<std::uint8_t> entry_of_;
  std::vector<std::string> texts_;
  std::vector<std::string> records_;  // Of settlements, as they were read.
  std::deque<Limit> remade_;          // Of reservations whose rule is gone.
  std::size_t weight_ = 0;
  WallTime wall_{};
  std::uint16_t slot_ = 0;
  bool wants_another_round_ = false;

  // What is being sent.
  mutable std::vector<double> numbers_;
  mutable std::vector<std::uint16_t> integers_;
  mutable bool is_short_ = false;           // Buckets only, whose levels fit into one number,
  mutable bool is_one_ = false;             // and just one charge.
  mutable std::vector<std::size_t> order_;  // Of keys_, as they are sent.
  mutable std::size_t plain_ = 0;
  mutable std::size_t logs_ = 0;

  // What has been answered.
  std::size_t items_ = 0;
  std::size_t taken_ = 0;
  std::vector<std::int64_t> masks_;
  Moment moment_;
  std::size_t corrupt_ = 0;
  std::size_t next_sight_ = 0;
};

}  // namespace weir::redis
