#include "lab/calibrate/client_table.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::lab {
namespace {

constexpr std::size_t kFirstSlots = 1024;

template <std::size_t kPeriod>
std::uint32_t TickOf(Duration since_began) noexcept {
  constexpr Duration kTick = kAllPeriods[kPeriod].length / PeakWindow::kTicks;
  static_assert(kTick * PeakWindow::kTicks == kAllPeriods[kPeriod].length);
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(since_began.count()) /
                                    static_cast<std::uint64_t>(kTick.count()));
}

// What a client that comes all the time may need for its hour and its day is bounded by these.
// Within a second or minute there are not so many requests.
constexpr std::array<std::uint32_t, kPeriods> kLongestRuns = {
    PeakWindow::kTicks / 1000, PeakWindow::kTicks / 1000, PeakWindow::kTicks / 128,
    PeakWindow::kTicks / 64};

template <std::size_t... kPeriod>
void AddToAll(Client& client, Duration since_began, RunPool& runs,
              std::index_sequence<kPeriod...> /*all*/) {
  (client.windows[kPeriod].Add(TickOf<kPeriod>(since_began), kLongestRuns[kPeriod], runs), ...);
}

void ForgetIfAway(Client& client, Duration away, RunPool& runs) noexcept {
  for (std::size_t i = 0; i < kPeriods && away >= kAllPeriods[i].length; ++i) {
    client.windows[i].Forget(runs);
  }
}

}  // namespace

ClientTable::ClientTable() : slots_(kFirstSlots) {}

void ClientTable::Count(std::uint64_t hash, WallTime time) {
  if (!began_) began_ = time;
  if (runs_.full() && runs_.used() >= sweep_at_) Sweep(time);
  Client& client = FindOrAdd(hash, time);
  ForgetIfAway(client, time - client.last, runs_);
  client.last = time;
  ++client.requests;
  AddToAll(client, time - *began_, runs_, std::make_index_sequence<kPeriods>());
}

std::optional<ClientId> ClientTable::Find(std::uint64_t hash) const noexcept {
  const Slot& slot = slots_[PlaceOf(hash)];
  if (slot.id == kNobody) return std::nullopt;
  return slot.id;
}

std::size_t ClientTable::PlaceOf(std::uint64_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32U);
  std::size_t place = hash & mask;
  while (slots_[place].id != kNobody &&
         (slots_[place].tag != tag || (*this)[slots_[place].id].hash != hash)) {
    place = (place + 1) & mask;
  }
  return place;
}

Client& ClientTable::FindOrAdd(std::uint64_t hash, WallTime time) {
  std::size_t place = PlaceOf(hash);
  if (slots_[place].id != kNobody) return At(slots_[place].id);
  if (size_ * 8 >= slots_.size() * 5) {
    Grow();
    place = PlaceOf(hash);
  }
  if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<Client[]>(kChunk));
  slots_[place] = {.tag = static_cast<std::uint32_t>(hash >> 32U),
                   .id = static_cast<ClientId>(size_)};
  Client& client = At(static_cast<ClientId>(size_++));
  client.hash = hash;
  client.first = time;
  client.last = time;
  return client;
}

void ClientTable::Grow() {
  std::vector<Slot> before(slots_.size() * 2);
  before.swap(slots_);
  for (const Slot& slot : before) {
    if (slot.id != kNobody) slots_[PlaceOf((*this)[slot.id].hash)] = slot;
  }
}

void ClientTable::Sweep(WallTime now) {
  for (std::size_t id = 0; id < size_; ++id) {
    Client& client = At(static_cast<ClientId>(id));
    ForgetIfAway(client, now - client.last, runs_);
  }
  sweep_at_ = std::max(kFirstSweep, 2 * runs_.used());
}

std::size_t ClientTable::bytes() const noexcept {
  return slots_.capacity() * sizeof(Slot) + chunks_.size() * kChunk * sizeof(Client) +
         runs_.bytes();
}

}  // namespace weir::lab
