#include "sim/world.h"

#include <algorithm>
#include <utility>

#include "base/mix.h"

namespace weir::sim {

World::EventId World::At(Duration when, std::function<void()> event) {
  const EventId id{.at = std::max(when, elapsed_), .number = next_number_++};
  events_.emplace(id, std::move(event));
  return id;
}

bool World::Step() {
  if (events_.empty()) return false;
  auto node = events_.extract(events_.begin());
  elapsed_ = node.key().at;
  ++happened_;
  Note(static_cast<std::uint64_t>(elapsed_.count()) ^ node.key().number);
  node.mapped()();
  return true;
}

void World::RunUntil(Duration when) {
  while (!events_.empty() && events_.begin()->first.at <= when) Step();
  elapsed_ = std::max(elapsed_, when);
}

void World::Note(std::uint64_t what) noexcept { fingerprint_ = Mix(fingerprint_ + what); }

void World::Note(std::string_view what) noexcept {
  // FNV-1a, because std::hash may differ from library to library.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : what) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  Note(hash);
}

}  // namespace weir::sim
