// One of several processes that ask for the same keys as fast as they are answered, and write down
// what they were told and when the server says that was.
//
//   hammer LIMIT PROCESS REQUESTS LOG     ask under one limit
//   hammer groups PROCESS REQUESTS LOG    ask under two limits at once: a scarce one that all share
//                                         and an ample one; prints how many passed
//   hammer honest PROCESS REQUESTS LOG    ask under the ample one alone, one after the other
//   hammer left                           prints what is left of the ample one
//
// WEIR_TEST_AMPLE=limit                   what the ample limit is: a bucket, instead of a window
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include <weir/clock.h>

#include "hammer_plan.h"
#include "random.h"
#include "store_on_servers.h"

namespace weir::on_servers {
namespace {

using conformance::Random;

constexpr int kUnderWay = 16;

// One request after the other; several of these work side by side on the loop.
class Worker final : public Completion {
 public:
  struct Shared {
    StoreOnServers& servers;
    const Limit& limit;
    Random random;
    std::vector<Event> log{};
    int left = 0;
    int next = 0;
    int working = 0;
    std::binary_semaphore done{0};
  };

  explicit Worker(Shared& shared) : shared_(shared) {}

  void Start(Store& store, Loop& loop) {
    store_ = &store;
    loop_ = &loop;
    pause_ = loop.MakeTimer([this] { releasing_ ? Release() : Ask(); });
    Ask();
  }

  void OnDecided(Group& group) noexcept override {
    if (releasing_) {
      // What was given back counts until then, and one whose time was over counted until that.
      if (!group.error) Note(group, true);
      releasing_ = false;
      return Next(Duration(0));
    }
    Note(group, false);
    if (group.reservation != ReservationId::kNone && !group.error) {
      releasing_ = true;
      return Next(std::chrono::milliseconds(shared_.random.Between(1, 20)));
    }
    Next(std::chrono::microseconds(shared_.random.Between(0, 20'000)));
  }

 private:
  void Next(Duration pause) noexcept { pause_->Start(pause); }

  void Note(const Group& group, bool released) {
    shared_.log.push_back({.decided_at = group.decided_at.time_since_epoch().count(),
                           .delay = group.decision.delay.count(),
                           .number = number_,
                           .cost = static_cast<std::int32_t>(charge_.cost),
                           .key = key_,
                           .allowed = group.decision.allowed,
                           .released = released,
                           .failed = group.error.has_value()});
  }

  void Ask() {
    if (shared_.left-- <= 0) {
      if (--shared_.working == 0) shared_.done.release();
      return;
    }
    number_ = shared_.next++;
    key_ = static_cast<std::uint8_t>(shared_.random.Between(0, kKeys - 1));
    name_ = "user=hammered-" + std::to_string(key_);
    charge_ = {.rule = "hammer",
               .key = name_,
               .hash = shared_.servers.Hash(name_),
               .limit = &shared_.limit,
               .cost = shared_.random.Between(1, 3)};
    group_ = {.charges = {&charge_, 1}, .decisions = decisions_};
    store_->Submit({&group_, 1}, loop_->now(), *this);
  }

  void Release() {
    in_force_ = {.rule = shared_.servers.Hash("hammer"), .name = "hammer", .limit = &shared_.limit};
    const ReservationId lease = group_.reservation;
    group_ = {.action = Action::kCancel, .in_force = {&in_force_, 1}, .reservation = lease};
    store_->Submit({&group_, 1}, loop_->now(), *this);
  }

  Shared& shared_;
  Store* store_ = nullptr;
  Loop* loop_ = nullptr;
  std::unique_ptr<Timer> pause_;
  bool releasing_ = false;
  int number_ = 0;
  std::uint8_t key_ = 0;
  std::string name_;
  Charge charge_;
  LimitInForce in_force_;
  std::array<Decision, 1> decisions_;
  Group group_;
};

int Write(const std::vector<Event>& log, const char* path) {
  std::FILE* const file = std::fopen(path, "wb");
  if (file == nullptr) return 1;
  const bool written = std::fwrite(log.data(), sizeof(Event), log.size(), file) == log.size();
  return std::fclose(file) == 0 && written ? 0 : 1;
}

int HammerOneLimit(StoreOnServers& servers, const Limit& limit, int process, int requests,
                   const char* path) {
  Worker::Shared shared{.servers = servers,
                        .limit = limit,
                        .random = Random(static_cast<std::uint64_t>(process) + 1),
                        .left = requests,
                        .working = kUnderWay};
  std::deque<Worker> workers;
  for (int i = 0; i < kUnderWay; ++i) workers.emplace_back(shared);
  servers.Post([&](Store& store, Loop& loop) {
    for (Worker& worker : workers) worker.Start(store, loop);
  });
  shared.done.acquire();
  // The workers' timers end on the loop's thread.
  std::binary_semaphore ended{0};
  servers.Post([&](Store&, Loop&) {
    workers.clear();
    ended.release();
  });
  ended.acquire();
  return Write(shared.log, path);
}

constexpr std::string_view kScarce = "60/s burst 20";

Result<Limit> Ample() {
  if (const char* const bucket = std::getenv("WEIR_TEST_AMPLE")) return Limit::Parse(bucket);
  return Limit::Parse("500000/min", {.algorithm = Algorithm::kFixedWindow, .align = Align::kEpoch});
}

struct Pair {
  Limit scarce = *Limit::Parse(kScarce)->ForSharedStore();
  Limit ample = Ample().value().ForSharedStore().value();
};

// Who they count may live in different slots.
constexpr std::string_view kScarceKey = "user=scarce";
constexpr std::string_view kAmpleKey = "user=ample";

std::array<Charge, 2> ChargesOf(const StoreOnServers& servers, const Pair& pair) {
  return {
      Charge{
          .rule = "ample", .key = kAmpleKey, .hash = servers.Hash(kAmpleKey), .limit = &pair.ample},
      Charge{.rule = "scarce",
             .key = kScarceKey,
             .hash = servers.Hash(kScarceKey),
             .limit = &pair.scarce}};
}

// The first `count` charges of the pair at a time, `under_way` requests side by side.
int HammerPair(StoreOnServers& servers, std::size_t count, std::size_t under_way, int requests,
               const char* path) {
  const Pair pair;
  const auto charges = ChargesOf(servers, pair);
  std::vector<Event> log;
  for (int asked = 0; asked < requests;) {
    std::vector<Group> groups(under_way);
    std::vector<std::array<Decision, 2>> decisions(under_way);
    for (std::size_t i = 0; i < under_way; ++i) {
      groups[i] = {.charges = std::span(charges).first(count),
                   .decisions = std::span(decisions[i]).first(count)};
    }
    const WallTime asked_at = SystemClock().Read().wall;
    servers.Decide(groups);
    for (const Group& group : groups) {
      log.push_back({.decided_at = group.decided_at.time_since_epoch().count(),
                     .asked_at = asked_at.time_since_epoch().count(),
                     .number = asked++,
                     .cost = 1,
                     .allowed = group.decision.allowed,
                     .failed = group.error.has_value()});
    }
  }
  return Write(log, path);
}

int PrintLeft(StoreOnServers& servers) {
  const Pair pair;
  const auto charges = ChargesOf(servers, pair);
  Charge charge = charges[0];
  charge.verb = Verb::kPeek;
  std::array<Decision, 1> decisions;
  Group group{.charges = {&charge, 1}, .decisions = decisions};
  servers.Decide({&group, 1});
  if (group.error) return 1;
  std::printf("%lld of %lld\n", static_cast<long long>(group.decision.remaining),
              static_cast<long long>(group.decision.limit));
  return 0;
}

int Main(int count, char** words) {
  const auto settings = SettingsFromEnvironment();
  const std::string_view what = count > 1 ? words[1] : "";
  if (!settings || (what != "left" && count != 5)) {
    std::fprintf(stderr, "usage: hammer LIMIT PROCESS REQUESTS LOG, with WEIR_TEST_SERVERS set\n");
    return 2;
  }
  StoreOnServers servers(*settings);
  if (!servers.AwaitConnection()) return 1;
  if (what == "left") return PrintLeft(servers);
  const int requests = std::atoi(words[3]);
  if (what == "groups") return HammerPair(servers, 2, kUnderWay, requests, words[4]);
  if (what == "honest") return HammerPair(servers, 1, 1, requests, words[4]);
  const auto spec = PlannedLimit(what);
  if (!spec) return 2;
  const auto made = Limit::Make(*spec);
  const auto limit = made ? made->ForSharedStore() : made;
  if (!limit) {
    std::fprintf(stderr, "%s\n", limit.error().message.c_str());
    return 1;
  }
  return HammerOneLimit(servers, *limit, std::atoi(words[2]), requests, words[4]);
}

}  // namespace
}  // namespace weir::on_servers

int main(int count, char** words) { return weir::on_servers::Main(count, words); }
