// A server as one thread sees it: its connections, when to make them anew, the calls that wait for
// one, and whether it is worth asking at all.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/loop.h"
#include "store/redis/call.h"
#include "store/redis/connection.h"
#include "store/redis/jitter.h"
#include "store/redis/registry.h"
#include "store/redis/settings.h"

namespace weir::redis {

// Why a call cannot be made now.
struct Obstacle {
  StoreFault fault = StoreFault::kOther;
  Error error{};
};

// Belongs to the loop's thread. Calls that it is given end sooner or later, from within its end at
// the latest.
class Node final : private Connection::Owner {
 public:
  // Told of what concerns others than those who wait for a call.
  class Watcher {
   public:
    // A connection could not be made or was lost: perhaps another server has its place by now.
    virtual void OnTrouble(Node& node) noexcept = 0;
    virtual void OnReady(Node& node) noexcept = 0;

   protected:
    ~Watcher() = default;
  };
  struct Options {
    Duration connect_timeout{};
    Duration timeout{};
    int connections = 1;
    std::size_t max_in_flight = 1'024;
    bool is_sentinel = false;
    // Makes the call that finds out whether the server is well again. None: to connect is enough.
    std::function<std::unique_ptr<Call>()> make_probe{};
  };

  // Begins to connect.
  Node(Loop& loop, Site site, Options options, Registry& registry, Watcher& watcher);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  const Site& site() const noexcept { return site_; }
  const std::string& name() const noexcept { return record_->name(); }
  ServerRecord& record() noexcept { return *record_; }
  bool is_ready() const noexcept;
  // Whether nobody waits for anything from it.
  bool is_idle() const noexcept;
  // Whether it has so much to do that another call would only stand behind others.
  bool is_busy() const noexcept;

  // Whether it can be asked, or is known not to answer; not while it connects for the first time.
  bool IsSettled() noexcept { return is_ready() || WhyNot().has_value(); }

  // None if a call may be sent, or wait to be.
  std::optional<Obstacle> WhyNot() noexcept;
  // It may end before this returns.
  void Send(std::unique_ptr<Call> call) noexcept;

  // This is no master any more: connections end once what was sent on them is answered, and others
  // take their place.
  void Renew() noexcept;

  void CountFault(StoreFault fault, std::uint64_t calls) noexcept { record_->Count(fault, calls); }

 private:
  struct Lane {
    std::unique_ptr<Connection> connection;
    bool is_retiring = false;
    SteadyTime connect_by{};         // While it is being made.
    SteadyTime made_at{};            // Once it is.
    SteadyTime retry_at{};           // While there is none.
    bool waits_for_breaker = false;  // Likewise: the breaker was open when it was last asked for.
    int failures = 0;                // To connect, in a row.
    int retries = 0;                 // Since one of them lasted.
  };

  // Connection::Owner
  void OnReady(Connection& connection) noexcept override;
  void OnAnswered(Connection& connection, std::unique_ptr<Call> call,
                  Duration took) noexcept override;
  void OnErrorReply(Connection& connection, std::unique_ptr<Call> call, std::uint64_t number,
                    std::string_view text, Duration took) noexcept override;
  void OnCaughtUp(Connection& connection) noexcept override;
  void OnOver(Connection& connection, StoreFault fault, Error error) noexcept override;

  SteadyTime Time() noexcept { return loop_.now().steady; }
  Lane& LaneOf(const Connection& connection) noexcept;
  static bool IsUsable(const Lane& lane) noexcept;
  static bool IsLive(const Lane& lane) noexcept;
  // One with room for so many more who wait, or null.
  Lane* LaneWithRoom(std::uint64_t weight) noexcept;
  bool HasHope() noexcept;

  void Connect(Lane& lane);
  void CloseLane(Lane& lane, StoreFault fault, const Error& error);
  void RetryLater(Lane& lane);
  // A version that is too old is as good as no server.
  std::optional<Obstacle> Inspect(Connection& connection);
  void SendProbe();
  void EndProbe(bool succeeded);

  void Tick();
  void TickLane(Lane& lane, SteadyTime now);
  void Expire(SteadyTime now);
  // Sees to it that Tick comes no later than that.
  void WakeBy(SteadyTime when);
  void WakeForNext();
  void SendQueued();
  void FailQueued(StoreFault fault, const Error& error);
  void FailCall(std::unique_ptr<Call> call, StoreFault fault, const Error& error);
  void NoteAnswers();
  void ShowCounts() noexcept;

  Loop& loop_;
  const Site site_;
  const Options options_;
  Registry& registry_;
  Watcher& watcher_;
  const std::shared_ptr<ServerRecord> record_;
  Sightings& seen_;
  Jitter jitter_;
  std::vector<Lane> lanes_;
  std::deque<std::unique_ptr<Call>> queue_;
  std::uint64_t queued_ = 0;  // How many wait for what is in it.
  Obstacle last_{};           // Why the last connection was not made, or ended.
  bool is_probing_ = false;
  bool is_to_be_tried_ = false;
  bool is_ending_ = false;
  // Answers of one read, for the breaker.
  std::uint32_t fast_answers_ = 0;
  std::uint32_t slow_answers_ = 0;
  std::unique_ptr<Timer> timer_;
  std::optional<SteadyTime> wake_at_;
};

}  // namespace weir::redis
