#include "store_on_servers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace weir::on_servers {
namespace {

class Counted final : public Completion {
 public:
  explicit Counted(std::size_t count) : left_(count) {}

  void OnDecided(Group&) noexcept override {
    if (--left_ == 0) done_.release();
  }
  void Wait() { done_.acquire(); }

 private:
  std::size_t left_;
  std::binary_semaphore done_{0};
};

}  // namespace

std::optional<redis::Settings> SettingsFromEnvironment() {
  const char* const servers = std::getenv("WEIR_TEST_SERVERS");
  if (servers == nullptr) return std::nullopt;
  redis::Settings settings;
  const char* const layout = std::getenv("WEIR_TEST_LAYOUT");
  if (layout != nullptr && std::string_view(layout) == "cluster") {
    settings.layout = redis::Layout::kCluster;
  }
  // Nothing here is about being in time, and the machine may be busy.
  settings.timeout = std::chrono::seconds(5);
  settings.connect_timeout = std::chrono::seconds(5);
  std::string_view rest = servers;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const auto endpoint = Endpoint::Parse(rest.substr(0, comma));
    if (!endpoint) return std::nullopt;
    settings.sites.push_back({.endpoint = *endpoint});
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return settings;
}

ServersClock::ServersClock() {
  const char* const path = std::getenv("WEIR_TEST_CLOCK");
  if (path == nullptr) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* const page =
      mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) ahead_ = static_cast<std::atomic<std::int64_t>*>(page);
  close(file);
}

ServersClock::~ServersClock() {
  if (ahead_ != nullptr) munmap(ahead_, sizeof(std::int64_t));
}

Now ServersClock::Read() const noexcept {
  Now now = SystemClock::Shared().Read();
  now.wall += ahead();
  return now;
}

void ServersClock::WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                             SteadyTime deadline) {
  SystemClock::Shared().WaitUntil(lock, wake, deadline);
}

void ServersClock::MoveTo(WallTime wall) {
  if (ahead_ == nullptr) return;
  const Duration step = wall - Read().wall;
  if (step > Duration(0)) *ahead_ += step.count();
}

void ServersClock::MoveBack() {
  if (ahead_ != nullptr) *ahead_ = 0;
}

Duration ServersClock::ahead() const noexcept {
  return Duration(ahead_ == nullptr ? 0 : ahead_->load());
}

StoreOnServers::StoreOnServers(const redis::Settings& settings)
    : settings_(settings),
      commons_(settings_, {.on_notice =
                               [](std::string_view text) {
                                 std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()),
                                              text.data());
                               }}),
      loop_(clock_),
      store_(std::make_unique<redis::RedisStore>(loop_, settings_, hasher_, commons_)),
      thread_([this] { loop_.Run(); }) {}

StoreOnServers::~StoreOnServers() {
  Post([this](Store&, Loop&) {
    store_.reset();
    loop_.Stop();
  });
  thread_.join();
}

void StoreOnServers::Post(Work work) {
  loop_.Post([this, work = std::move(work)] { work(*store_, loop_); });
}

void StoreOnServers::Decide(std::span<Group> groups) {
  Counted counted(groups.size());
  Post([&](Store& store, Loop& loop) { store.Submit(groups, loop.now(), counted); });
  counted.Wait();
}

void StoreOnServers::Submit(std::span<Group> groups, Now /*now*/, Completion& completion) noexcept {
  Decide(groups);
  for (Group& group : groups) completion.OnDecided(group);
}

bool StoreOnServers::AwaitConnection() {
  const Limit limit = *Limit::Parse("1000000/s");
  for (int attempt = 0; attempt < 200; ++attempt) {
    const Charge charge{.rule = "connection",
                        .key = "user=nobody",
                        .hash = Hash("user=nobody"),
                        .limit = &limit,
                        .cost = 0};
    std::array<Decision, 1> decisions;
    Group group{.charges = {&charge, 1}, .decisions = decisions};
    Decide({&group, 1});
    if (!group.error) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return false;
}

}  // namespace weir::on_servers
