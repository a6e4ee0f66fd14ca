// A store on real servers, asked by a test that waits for the answers. Which servers is told by the
// environment, because they are started elsewhere:
//
//   WEIR_TEST_SERVERS  127.0.0.1:6379, or several with commas; without it nothing can be tested
//   WEIR_TEST_LAYOUT   servers (the default) or cluster
//   WEIR_TEST_CLOCK    a file of 8 bytes, by as many nanoseconds the servers' clocks are ahead
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <span>
#include <thread>

#include <weir/clock.h>

#include "base/hash.h"
#include "net/epoll_loop.h"
#include "store/redis/redis_store.h"
#include "store/redis/settings.h"
#include "store/store.h"

namespace weir::on_servers {

// Nothing if the environment names no servers.
std::optional<redis::Settings> SettingsFromEnvironment();

// The wall clock of all servers, and of the process that asks them. While keys are in use it moves
// forward only: what has expired stays so.
class ServersClock final : public Clock {
 public:
  ServersClock();
  ServersClock(const ServersClock&) = delete;
  ServersClock& operator=(const ServersClock&) = delete;
  ~ServersClock() override;

  Now Read() const noexcept override;
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                 SteadyTime deadline) override;

  // Forward to that time, if it can be moved.
  void MoveTo(WallTime wall);
  // Back to the time of this machine. For those who go on with other keys.
  void MoveBack();

 private:
  Duration ahead() const noexcept;

  std::atomic<std::int64_t>* ahead_ = nullptr;
};

// The store and the thread of its loop. Who submits waits.
class StoreOnServers final : public Store {
 public:
  explicit StoreOnServers(const redis::Settings& settings);
  StoreOnServers(const StoreOnServers&) = delete;
  StoreOnServers& operator=(const StoreOnServers&) = delete;
  ~StoreOnServers() override;

  std::uint64_t Hash(std::string_view key) const noexcept override { return hasher_(key); }
  // Waits for all of them.
  void Decide(std::span<Group> groups);
  // The same: completes all before it returns.
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;
  // Waits until it was connected once. False if that took too long.
  bool AwaitConnection();

  // Runs there, for those who have many calls under way: `work` is given the store and the loop.
  using Work = std::function<void(Store&, Loop&)>;
  void Post(Work work);

  ServersClock& clock() { return clock_; }

 private:
  ServersClock clock_;
  KeyHasher hasher_{HashKind::kXxh3, 1};
  redis::Settings settings_;
  redis::Commons commons_;
  EpollLoop loop_;
  std::unique_ptr<redis::RedisStore> store_;
  std::thread thread_;
};

}  // namespace weir::on_servers
