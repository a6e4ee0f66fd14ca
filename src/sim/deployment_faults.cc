// What can be done to servers: one table of faults, and how each begins and ends.
#include <algorithm>
#include <array>
#include <utility>

#include "sim/deployment.h"

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum FaultKind;

constexpr std::array<FaultTraits, 29> kFaults = {{
    {.kind = kRestartEmpty,
     .name = "restart empty",
     .what = "ends, and comes back without its data",
     .forgets = true},
    {.kind = kRestartWithData,
     .name = "restart with data",
     .what = "ends, and comes back with its data"},
    {.kind = kPause, .name = "pause", .what = "stands still; connections stay"},
    {.kind = kSlow, .name = "slow", .what = "takes so long for every command", .takes_by = true},
    {.kind = kScriptsFlushed,
     .name = "scripts flushed",
     .what = "forgets scripts again and again",
     .is_harmless = true},
    {.kind = kLoading, .name = "loading", .what = "says LOADING"},
    {.kind = kBusy, .name = "busy", .what = "says BUSY"},
    {.kind = kReadOnly, .name = "read only", .what = "says READONLY"},
    {.kind = kOutOfMemory, .name = "out of memory", .what = "says OOM"},
    {.kind = kCannotSave, .name = "cannot save", .what = "says MISCONF"},
    {.kind = kRevoked, .name = "password revoked", .what = "says NOAUTH to everybody"},
    {.kind = kGarbageReplies, .name = "garbage replies", .what = "answers with what is no reply"},
    {.kind = kEviction,
     .name = "eviction",
     .what = "forgets some keys",
     .forgets = true,
     .is_harmless = true,
     .is_at_once = true},
    {.kind = kFlush,
     .name = "flush",
     .what = "forgets all keys",
     .forgets = true,
     .is_harmless = true,
     .is_at_once = true},
    {.kind = kGarbageKey,
     .name = "garbage under a key",
     .what = "has something else under one of our keys",
     .forgets = true,
     .is_harmless = true,
     .is_at_once = true},
    {.kind = kClockBack,
     .name = "clock back",
     .what = "its clock is set back, and ahead again at the end",
     .moves_clock = true,
     .is_harmless = true,
     .takes_by = true},
    {.kind = kClockAhead,
     .name = "clock ahead",
     .what = "its clock is set ahead, and back again at the end",
     .moves_clock = true,
     .is_harmless = true,
     .takes_by = true},
    {.kind = kReset, .name = "reset", .what = "all connections break", .is_at_once = true},
    {.kind = kResetMidReply,
     .name = "reset in a reply",
     .what = "connections break in the middle of a reply"},
    {.kind = kRefused, .name = "refused", .what = "connections break, and new ones are refused"},
    {.kind = kSilent, .name = "silent", .what = "connections break, and nobody answers new ones"},
    {.kind = kCutOff, .name = "cut off", .what = "nothing arrives; what was sent comes at the end"},
    {.kind = kRepliesHeldBack, .name = "replies held back", .what = "replies come at the end"},
    {.kind = kRepliesLost,
     .name = "replies lost",
     .what = "requests are carried out, replies never arrive"},
    {.kind = kRequestsLost, .name = "requests lost", .what = "requests never arrive"},
    {.kind = kLate,
     .name = "late",
     .what = "everything is under way for so long",
     .takes_by = true},
    {.kind = kClusterDown,
     .name = "cluster down",
     .what = "all nodes say CLUSTERDOWN",
     .needs_cluster = true},
    {.kind = kSlotsMove,
     .name = "slots move",
     .what = "slots go to other nodes, key by key",
     .needs_cluster = true},
    {.kind = kFailover,
     .name = "failover",
     .what = "another takes its place, without what was written last",
     .forgets = true,
     .needs_replica = true},
}};
static_assert(std::ranges::is_sorted(kFaults, {}, &FaultTraits::kind));

}  // namespace

std::span<const FaultTraits> AllFaults() { return kFaults; }
const FaultTraits& TraitsOf(FaultKind kind) { return kFaults[static_cast<std::size_t>(kind)]; }

FaultKind Deployment::DrawKind(Random& random) const {
  const std::size_t kind = random.Index(10);
  if (kind == 9 && cluster_ != nullptr) return random.Chance(30) ? kClusterDown : kSlotsMove;
  if (kind >= 8 && replica_ != nullptr) return kFailover;
  if (kind >= 6) {
    return random.OneOf(
        {kLoading, kBusy, kReadOnly, kOutOfMemory, kCannotSave, kRevoked, kGarbageReplies});
  }
  if (kind >= 5) {
    return random.OneOf({kEviction, kFlush, kGarbageKey, random.OneOf({kClockBack, kClockAhead})});
  }
  if (kind >= 3) {
    return random.OneOf({kRestartEmpty, kRestartWithData, kPause, kSlow, kScriptsFlushed});
  }
  return random.OneOf({kReset, kResetMidReply, kRefused, kSilent, kCutOff, kRepliesHeldBack,
                       kRepliesLost, kRequestsLost, kLate});
}

Fault Deployment::Plan(const FaultOrder& order, Random& random) {
  const FaultTraits& traits = TraitsOf(order.kind);
  const auto drawn_server = static_cast<int>(random.Index(masters_.size()));
  const int which = order.server.value_or(drawn_server);
  Drawn drawn = Draw(order, which, random);
  const auto server = std::make_shared<RedisServer*>(nullptr);
  world_.At(order.begins, [this, which, server, begin = std::move(drawn.begin)] {
    *server = masters_[static_cast<std::size_t>(which)];
    begin(**server);
  });
  if (drawn.end) world_.At(order.ends, [server, end = std::move(drawn.end)] { end(**server); });
  Fault fault{.name = std::string(traits.name),
              .begins = order.begins,
              .ends = order.ends,
              .forgets = traits.forgets,
              .moves_clock = traits.moves_clock,
              .moves_clock_back = order.kind == kClockBack,
              .is_harmless = traits.is_harmless};
  if (!traits.needs_cluster) fault.server = which;
  return fault;
}

Deployment::Drawn Deployment::Draw(const FaultOrder& order, int which, Random& random) {
  const Duration lasts = order.ends - order.begins;
  if (order.kind == kFailover) return DrawFailover(lasts, which, random);
  if (order.kind == kSlotsMove) return DrawSlotsMove(lasts);
  if (order.kind == kClusterDown) {
    return {.begin = [this](RedisServer&) { cluster_->SetDown(true); },
            .end = [this](RedisServer&) { cluster_->SetDown(false); }};
  }
  if (order.kind >= kReset) return DrawNetworkFault(order, random);
  if (order.kind >= kEviction) return DrawDataFault(order, random);
  if (order.kind >= kLoading) return DrawErrorFault(order.kind, random);
  return DrawServerFault(order, random);
}

Deployment::Drawn Deployment::DrawServerFault(const FaultOrder& order, Random& random) {
  const Duration lasts = order.ends - order.begins;
  switch (order.kind) {
    case kRestartEmpty:
      return {.begin = [](RedisServer& server) { server.Crash(); },
              .end = [](RedisServer& server) { server.Start(RedisServer::Data::kLost); }};
    case kRestartWithData:
      return {.begin = [](RedisServer& server) { server.Crash(); },
              .end = [](RedisServer& server) { server.Start(RedisServer::Data::kKept); }};
    case kPause:
      return {.begin = [lasts](RedisServer& server) { server.Pause(lasts); }};
    case kSlow: {
      const Duration drawn = random.Between(milliseconds(5), milliseconds(200));
      return {.begin = [each = order.by.value_or(drawn)](
                           RedisServer& server) { server.SetSlowness(each); },
              .end = [](RedisServer& server) { server.SetSlowness({}); }};
    }
    default: {
      const int times = static_cast<int>(random.Between(1, 50));
      return {.begin = [this, lasts, times](RedisServer& server) {
        for (int i = 0; i < times; ++i) {
          world_.After(lasts * i / times, [&server] { server.core().ForgetScripts(); });
        }
      }};
    }
  }
}

Deployment::Drawn Deployment::DrawErrorFault(FaultKind kind, Random& random) {
  const auto says = [](const char* error) {
    return Drawn{.begin = [error](RedisServer& server) { server.SetError(error); },
                 .end = [](RedisServer& server) { server.SetError(""); }};
  };
  switch (kind) {
    case kLoading:
      return says("LOADING Redis is loading the dataset in memory");
    case kBusy:
      return says(
          "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
    case kReadOnly:
      return {.begin = [](RedisServer& server) { server.SetReadOnly(true); },
              .end = [](RedisServer& server) { server.SetReadOnly(false); }};
    case kOutOfMemory:
      return {.begin = [](RedisServer& server) { server.SetOutOfMemory(true); },
              .end = [](RedisServer& server) { server.SetOutOfMemory(false); }};
    case kCannotSave:
      return {.begin = [](RedisServer& server) { server.SetUnableToSave(true); },
              .end = [](RedisServer& server) { server.SetUnableToSave(false); }};
    case kRevoked:
      return {.begin = [](RedisServer& server) { server.SetRevoked(true); },
              .end = [](RedisServer& server) { server.SetRevoked(false); }};
    default: {
      const int count = static_cast<int>(random.Between(1, 10));
      return {.begin = [count](RedisServer& server) { server.SpoilReplies(count); },
              .end = [](RedisServer& server) { server.SpoilReplies(0); }};
    }
  }
}

Deployment::Drawn Deployment::DrawDataFault(const FaultOrder& order, Random& random) {
  switch (order.kind) {
    case kEviction: {
      const int count = static_cast<int>(random.Between(1, 20));
      return {
          .begin = [this, count](RedisServer& server) { server.Evict(count, world_.random()); }};
    }
    case kFlush:
      return {.begin = [](RedisServer& server) { server.core().keyspace().Clear(); }};
    case kGarbageKey:
      return {.begin = [this](RedisServer& server) {
        RedisCore& core = server.core();
        const std::vector<std::string> keys = core.keyspace().Keys();
        if (keys.empty()) return;
        const std::string& key = keys[world_.random().Index(keys.size())];
        core.Execute({"DEL", key});
        if (world_.random().Chance(50)) {
          core.Execute({"LPUSH", key, "not ours"});
        } else {
          core.Execute({"SET", key, "nan"});
        }
      }};
    default: {
      const Duration drawn = random.Between(milliseconds(1), seconds(100));
      const Duration step = order.by.value_or(drawn) * (order.kind == kClockBack ? -1 : 1);
      return {.begin = [step](RedisServer& server) { server.MoveClock(step); },
              .end = [step](RedisServer& server) { server.MoveClock(-step); }};
    }
  }
}

Deployment::Drawn Deployment::Under(const std::function<void(Weather&)>& turn) {
  Weather foul = options_.fair;
  turn(foul);
  return {
      .begin = [this, foul](RedisServer& server) { network_.SetWeather(server.address(), foul); },
      .end = [this](RedisServer& server) { network_.SetWeather(server.address(), options_.fair); }};
}

Deployment::Drawn Deployment::ShutOut(Weather::Door door) {
  Drawn drawn = Under([door](Weather& it) { it.door = door; });
  drawn.begin = [this, begin = std::move(drawn.begin)](RedisServer& server) {
    begin(server);
    network_.Reset(server.address());
  };
  return drawn;
}

Deployment::Drawn Deployment::DrawNetworkFault(const FaultOrder& order, Random& random) {
  switch (order.kind) {
    case kReset:
      return {.begin = [this](RedisServer& server) { network_.Reset(server.address()); }};
    case kResetMidReply: {
      const auto bytes = static_cast<std::size_t>(random.Between(1, 300));
      return {.begin = [this, bytes](
                           RedisServer& server) { network_.ResetAfter(server.address(), bytes); },
              .end = [this](RedisServer& server) { network_.ResetAfter(server.address(), 0); }};
    }
    case kRefused:
      return ShutOut(Weather::Door::kRefuses);
    case kSilent:
      return ShutOut(Weather::Door::kSilent);
    case kCutOff:
      return Under([](Weather& it) { it.stalls_to_client = it.stalls_to_server = true; });
    case kRepliesHeldBack:
      return Under([](Weather& it) { it.stalls_to_client = true; });
    case kRepliesLost:
      return Under([](Weather& it) { it.loses_to_client = true; });
    case kRequestsLost:
      return Under([](Weather& it) { it.loses_to_server = true; });
    default: {
      const Duration drawn = random.Between(milliseconds(5), milliseconds(80));
      return Under([late = order.by.value_or(drawn)](Weather& it) {
        it.least_latency = late / 2;
        it.most_latency = late;
      });
    }
  }
}

// All slots that have keys go elsewhere, a few keys at a time.
Deployment::Drawn Deployment::DrawSlotsMove(Duration lasts) {
  return {.begin =
              [this, lasts](RedisServer&) {
                for (RedisServer* const from : masters_) {
                  for (const std::string& key : from->core().keyspace().Keys()) {
                    RedisServer& to = *masters_[world_.random().Index(masters_.size())];
                    cluster_->BeginMove(redis::SlotOfKey(key), to);
                  }
                }
                for (int i = 1; i < 10; ++i) {
                  world_.After(lasts * i / 10, [this] { cluster_->MoveKeys(3); });
                }
              },
          .end = [this](RedisServer&) { cluster_->EndMoves(); }};
}

}  // namespace weir::sim
