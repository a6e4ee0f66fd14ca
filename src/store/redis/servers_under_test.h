// What tests with real servers share: servers that are started on free ports and stopped by their
// process ids, and a store on a loop of its own that is asked and waited for.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <weir/clock.h>

#include "net/epoll_loop.h"
#include "store/redis/redis_store.h"

namespace weir::redis {

// A free port that this process has not returned before. The port 10000 above, on which a server of
// a cluster also listens, is free as well. Both are below the ports that the kernel hands out, and
// random, because other test programs search for ports at the same time.
inline std::uint16_t FreePort() {
  const auto is_free = [](std::uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    return free;
  };
  static std::random_device random;
  static std::set<std::uint16_t> returned;
  std::uniform_int_distribution<std::uint16_t> ports(12'000, 21'999);
  for (;;) {
    const std::uint16_t port = ports(random);
    if (!is_free(port) || !is_free(static_cast<std::uint16_t>(port + 10'000))) continue;
    if (returned.insert(port).second) return port;
  }
}

// A folder that goes with it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-redis-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

// Sends one command and waits for the reply, without any of what is under test.
inline std::string AskServer(std::uint16_t port, const std::vector<std::string>& words) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  timeval longest{.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest));
  std::string reply;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    std::string command = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
      command += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    static_cast<void>(!send(fd, command.data(), command.size(), MSG_NOSIGNAL));
    std::array<char, 65'536> bytes{};
    const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
    if (count > 0) reply.assign(bytes.data(), static_cast<std::size_t>(count));
  }
  close(fd);
  return reply;
}

// Polls until it is so. False after ten seconds.
inline bool Eventually(const std::function<bool()>& is_so) {
  for (int i = 0; i < 1'000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// A redis-server process. It ends with this, and with the test.
class Server {
 public:
  explicit Server(std::vector<std::string> options = {}, std::uint16_t port = FreePort())
      : port_(port), options_(std::move(options)) {
    Start();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { Stop(SIGKILL); }

  void Start() {
    std::vector<std::string> words = {"redis-server"};
    const bool has_file = !options_.empty() && !options_.front().starts_with("--");
    if (has_file) words.push_back(options_.front());
    words.insert(words.end(), {"--port", std::to_string(port_), "--dir", folder_.path().string(),
                               "--save", "", "--bind", "127.0.0.1"});
    words.insert(words.end(), options_.begin() + (has_file ? 1 : 0), options_.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int log = open((folder_.path() / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      dup2(log, 1);
      dup2(log, 2);
      execvp("redis-server", arguments.data());
      _exit(127);
    }
    Eventually([this] { return !Ask({"PING"}).empty(); });
  }
  void Stop(int signal = SIGTERM) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void Signal(int signal) const { kill(pid_, signal); }

  std::uint16_t port() const noexcept { return port_; }
  Endpoint endpoint() const { return {.host = "127.0.0.1", .port = port_, .path = {}}; }
  std::string Ask(const std::vector<std::string>& words) const { return AskServer(port_, words); }
  const std::filesystem::path& folder() const noexcept { return folder_.path(); }

 private:
  const std::uint16_t port_;
  std::vector<std::string> options_;
  ScratchFolder folder_;
  pid_t pid_ = 0;
};

// The machine's clock, but that somebody has set the calendar to another day.
class MissetClock final : public Clock {
 public:
  explicit MissetClock(Duration ahead) : ahead_(ahead) {}

  Now Read() const noexcept override {
    Now now = right_.Read();
    now.wall += ahead_;
    return now;
  }
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                 SteadyTime deadline) override {
    right_.WaitUntil(lock, wake, deadline);
  }

 private:
  SystemClock right_;
  const Duration ahead_;
};

// A store on a loop and thread of its own. Groups are asked from the test's thread.
class StoreOnThread {
 public:
  explicit StoreOnThread(Settings settings, Duration calendar_ahead = Duration(0))
      : settings_(std::move(settings)),
        clock_(calendar_ahead),
        commons_(settings_, {.on_notice = [this](std::string_view text) { Hear(text); }}),
        thread_([this] { Run(); }) {
    while (!ready_.load()) std::this_thread::yield();
  }
  StoreOnThread(const StoreOnThread&) = delete;
  StoreOnThread& operator=(const StoreOnThread&) = delete;
  ~StoreOnThread() {
    loop_.Stop();
    thread_.join();
  }

  // Submits them together and waits until all are decided. How long the slowest took.
  Duration Ask(std::span<Group> groups) {
    Waiter waiter(groups.size());
    const SteadyTime begin = clock_.Read().steady;
    loop_.Post([&] { store_->Submit(groups, loop_.now(), waiter); });
    waiter.Wait();
    return clock_.Read().steady - begin;
  }
  Result<int> Beat(std::string_view member) {
    Waiter waiter(1);
    Result<int> count = 0;
    loop_.Post([&] {
      store_->Beat(member, [&](Result<int> told) {
        count = std::move(told);
        waiter.Done();
      });
    });
    waiter.Wait();
    return count;
  }
  // On the loop's thread.
  void Do(const std::function<void(RedisStore&, EpollLoop&)>& task) {
    Waiter waiter(1);
    loop_.Post([&] {
      task(*store_, loop_);
      waiter.Done();
    });
    waiter.Wait();
  }

  std::uint64_t Hash(std::string_view key) const { return hasher_(key); }
  Commons& commons() noexcept { return commons_; }
  std::uint64_t Faults(StoreFault fault) const {
    std::uint64_t count = 0;
    for (const EndpointReport& report : commons_.Report()) {
      count += report.faults[static_cast<std::size_t>(fault)];
    }
    return count;
  }
  bool Heard(std::string_view part) {
    const std::scoped_lock lock(mutex_);
    return heard_.find(part) != std::string::npos;
  }
  std::string heard() {
    const std::scoped_lock lock(mutex_);
    return heard_;
  }

 private:
  struct Waiter final : Completion {
    explicit Waiter(std::size_t count) : left(count) {}
    void OnDecided(Group&) noexcept override { Done(); }
    void Done() noexcept {
      const std::scoped_lock lock(mutex);
      if (--left == 0) done.notify_one();
    }
    void Wait() {
      std::unique_lock lock(mutex);
      done.wait(lock, [this] { return left == 0; });
    }
    std::mutex mutex;
    std::condition_variable done;
    std::size_t left;
  };

  void Run() {
    store_ = std::make_unique<RedisStore>(loop_, settings_, hasher_, commons_);
    ready_.store(true);
    loop_.Run();
    store_ = nullptr;
  }
  void Hear(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    heard_.append(text).append("\n");
  }

  const Settings settings_;
  std::mutex mutex_;
  std::string heard_;
  MissetClock clock_;
  EpollLoop loop_{clock_};
  const KeyHasher hasher_{HashKind::kXxh3, 1};
  Commons commons_;
  std::unique_ptr<RedisStore> store_;
  std::atomic<bool> ready_{false};
  std::thread thread_;
};

}  // namespace weir::redis
