#include "sim/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/network.h"

namespace weir::sim {

class SimStream final : public Stream {
 public:
  SimStream(std::shared_ptr<Connection> connection, Connection::Side side, std::string peer)
      : connection_(std::move(connection)), side_(side), peer_(std::move(peer)) {}
  SimStream(const SimStream&) = delete;
  SimStream& operator=(const SimStream&) = delete;
  ~SimStream() override { connection_->Close(side_); }

  void SetHandler(StreamHandler& handler) noexcept override {
    end().handler = &handler;
    connection_->Poll(side_);
  }
  void Read(std::span<char> room) noexcept override {
    end().room = room;
    connection_->Poll(side_);
  }
  std::optional<std::size_t> Write(std::string_view bytes) noexcept override {
    return connection_->Write(side_, bytes);
  }
  void AwaitWritable() noexcept override {
    end().awaits_writable = true;
    connection_->Poll(side_);
  }
  void FinishWriting() noexcept override { connection_->Finish(side_); }
  void SetUserTimeout(Duration longest) noexcept override {
    end().user_timeout = end().loop->ToWorld(longest);
  }
  std::string_view why_broken() const noexcept override { return connection_->ends_[side_].why; }
  std::string_view peer() const noexcept override { return peer_; }

 private:
  Connection::End& end() { return connection_->ends_[side_]; }

  const std::shared_ptr<Connection> connection_;
  const Connection::Side side_;
  const std::string peer_;
};

Connection::Connection(const Place& place, SimLoop& client) : place_(place) {
  ends_[kClient].loop = &client;
}

std::unique_ptr<Stream> Connection::MakeStream(Side side, std::string peer) {
  return std::make_unique<SimStream>(shared_from_this(), side, std::move(peer));
}

bool Connection::IsStalled(Side from) const {
  return from == kClient ? place_.weather.stalls_to_server : place_.weather.stalls_to_client;
}

bool Connection::Loses(Side from) const {
  return from == kClient ? place_.weather.loses_to_server : place_.weather.loses_to_client;
}

std::size_t Connection::Room(Side from) const {
  const Direction& direction = directions_[from];
  const std::size_t taken = direction.bytes_under_way + direction.arrived.size();
  return taken >= place_.weather.window ? 0 : place_.weather.window - taken;
}

std::optional<std::size_t> Connection::Write(Side from, std::string_view bytes) {
  End& end = ends_[from];
  if (end.is_broken) return std::nullopt;
  if (bytes.empty() || directions_[from].is_finished) return 0;
  const Side to = Other(from);
  if (ends_[to].is_closed) {
    // What reaches one who has closed is answered by a reset.
    place_.world.After(place_.weather.most_latency, [self = shared_from_this(), from] {
      self->BreakEnd(from, "connection reset by peer");
    });
  }
  const std::size_t count = std::min(bytes.size(), Room(from));
  Send(from, bytes.substr(0, count));
  return count;
}

void Connection::Send(Side from, std::string_view bytes) {
  std::size_t& left = place_.bytes_before_reset;
  const bool breaks = from == kServer && left != 0 && bytes.size() >= left;
  if (breaks) bytes = bytes.substr(0, left);
  if (from == kServer && left != 0) left -= bytes.size();
  const Weather& weather = place_.weather;
  const bool splits = weather.split_percent > 0 && place_.random.Chance(weather.split_percent);
  while (!bytes.empty()) {
    const std::size_t most =
        std::min(bytes.size(), std::max<std::size_t>(weather.largest_piece, 1));
    const std::size_t size = splits ? place_.random.Index(most) + 1 : bytes.size();
    AddSegment(from, bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (breaks) {
    place_.world.At(directions_[from].last_arrival + weather.least_latency,
                    [self = shared_from_this()] { self->Break("connection reset by peer"); });
  }
}

void Connection::AddSegment(Side from, std::string_view bytes) {
  Direction& direction = directions_[from];
  const Duration now = place_.world.elapsed();
  if (Loses(from) && !std::exchange(direction.is_lost, true)) direction.lost_since = now;
  if (!direction.is_lost) {
    const Duration wait =
        place_.random.Between(place_.weather.least_latency, place_.weather.most_latency);
    direction.last_arrival = std::max(direction.last_arrival, now + wait);
    direction.under_way.push_back(
        {.bytes = std::string(bytes), .sent = now, .arrives = direction.last_arrival});
    direction.bytes_under_way += bytes.size();
    PlanArrival(from);
  }
  if (direction.is_lost || IsStalled(from)) WatchAcknowledgement(from);
}

void Connection::PlanArrival(Side from) {
  Direction& direction = directions_[from];
  if (direction.is_planned || direction.under_way.empty() || IsStalled(from)) return;
  direction.is_planned = true;
  direction.next = place_.world.At(direction.under_way.front().arrives,
                                   [self = shared_from_this(), from] { self->Arrive(from); });
}

void Connection::Arrive(Side from) {
  Direction& direction = directions_[from];
  direction.is_planned = false;
  if (IsStalled(from)) return;
  const Duration now = place_.world.elapsed();
  while (!direction.under_way.empty() && direction.under_way.front().arrives <= now) {
    const Segment& segment = direction.under_way.front();
    direction.arrived.Append(segment.bytes);
    direction.bytes_under_way -= segment.bytes.size();
    if (segment.bytes.empty()) direction.end_arrived = true;
    direction.under_way.pop_front();
  }
  PlanArrival(from);
  Poll(Other(from));
  if (ends_[from].awaits_writable) Poll(from);
}

void Connection::OnWeather() {
  for (const Side from : {kClient, kServer}) {
    if (IsStalled(from)) {
      WatchAcknowledgement(from);
    } else {
      PlanArrival(from);
    }
  }
}

void Connection::WatchAcknowledgement(Side from) {
  const Direction& direction = directions_[from];
  const End& end = ends_[from];
  if (end.user_timeout <= Duration(0) || end.is_closed || end.is_broken) return;
  if (!direction.is_lost && direction.under_way.empty()) return;
  const Duration since =
      direction.is_lost ? direction.lost_since : direction.under_way.front().sent;
  place_.world.At(since + end.user_timeout, [self = shared_from_this(), from, since] {
    const Direction& now = self->directions_[from];
    const bool is_same = now.is_lost
                             ? now.lost_since == since
                             : !now.under_way.empty() && now.under_way.front().sent == since;
    if (is_same) self->BreakEnd(from, "connection timed out");
  });
}

void Connection::Finish(Side from) {
  if (std::exchange(directions_[from].is_finished, true)) return;
  AddSegment(from, {});
}

void Connection::Close(Side side) {
  End& end = ends_[side];
  end.is_closed = true;
  end.handler = nullptr;
  end.room = {};
  if (!end.is_broken && ends_[Other(side)].loop != nullptr) Finish(side);
}

void Connection::BreakEnd(Side side, std::string_view why) {
  End& end = ends_[side];
  if (end.is_closed || std::exchange(end.is_broken, true)) return;
  end.why = why;
  Poll(side);
}

void Connection::Break(std::string_view why) {
  for (Direction& direction : directions_) {
    place_.world.Cancel(direction.next);
    direction.under_way.clear();
    direction.bytes_under_way = 0;
  }
  BreakEnd(kClient, why);
  BreakEnd(kServer, why);
}

void Connection::Poll(Side side) {
  End& end = ends_[side];
  if (end.loop == nullptr || end.is_closed || std::exchange(end.is_polled, true)) return;
  end.loop->Ready([self = shared_from_this(), side] { self->PollNow(side); });
}

// A handler may end its stream; then it is not told anything more.
void Connection::PollNow(Side side) {
  End& end = ends_[side];
  end.is_polled = false;
  if (end.is_closed || end.handler == nullptr || end.broken_told) return;
  if (end.is_broken) {
    end.broken_told = true;
    return end.handler->OnBroken();
  }
  if (end.awaits_writable && Room(side) > 0) {
    end.awaits_writable = false;
    end.handler->OnWritable();
    if (end.is_closed) return;
  }
  Direction& incoming = directions_[Other(side)];
  const bool is_over = incoming.end_arrived && incoming.arrived.empty();
  if (end.room.empty()) {
    if (is_over && !std::exchange(end.hang_up_told, true)) end.handler->OnHangUp();
    return;
  }
  if (incoming.arrived.empty() && !is_over) return;
  const std::span<char> room = std::exchange(end.room, {});
  const std::size_t count = std::min(room.size(), incoming.arrived.size());
  if (count != 0) std::memcpy(room.data(), incoming.arrived.view().data(), count);
  incoming.arrived.Consume(count);
  if (ends_[Other(side)].awaits_writable) Poll(Other(side));
  end.handler->OnRead(count);
}

}  // namespace weir::sim
