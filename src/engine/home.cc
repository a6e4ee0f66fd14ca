#include "engine/home.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "engine/blocking_store.h"
#include "store/memory/memory_store.h"

namespace weir {

Home::Home(const MemoryStoreOptions& options, Now start)
    : memory(std::make_unique<MemoryStore>(options, start)) {}

Home::Home(std::unique_ptr<SharedPlace> its_place, Clock& clock, EngineParts::Threads threads)
    : place(std::move(its_place)) {
  if (threads == EngineParts::Threads::kNone) {
    needs_heartbeat = true;
    return;
  }
  blocking = std::make_unique<BlockingStore>(
      clock, place->hasher(), place->timeout(),
      [this](Loop& loop) { return place->OpenOn(loop, SharedPlace::Heartbeat::kYes); });
}

Home::~Home() = default;

void Home::EndThread() noexcept { blocking.reset(); }

Store& Home::store() noexcept {
  if (memory) return *memory;
  return *blocking;
}

CapChange Home::SetCap(std::size_t bytes, Now now) noexcept {
  return memory ? memory->SetCap(bytes, now) : place->SetCap(bytes, now);
}

Homes::~Homes() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const std::shared_ptr<Home>& home : former_) home->EndThread();
  current_->EndThread();
}

void Homes::MoveTo(std::shared_ptr<Home> next) {
  std::swap(current_, next);
  if (next->is_shared()) next->place->Leave();
  {
    const std::scoped_lock lock(mutex_);
    former_.push_back(std::move(next));
  }
  wake_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { EndFormer(); });
}

// Whoever has a question holds on to its home. That the last of them has let go is looked for now
// and then: there is no hurry.
void Homes::EndFormer() {
  constexpr auto kPause = std::chrono::milliseconds(20);
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const auto unused = std::ranges::partition(
        former_, [](const std::shared_ptr<Home>& home) { return home.use_count() > 1; });
    std::vector<std::shared_ptr<Home>> over(std::make_move_iterator(unused.begin()),
                                            std::make_move_iterator(unused.end()));
    former_.erase(unused.begin(), unused.end());
    if (!over.empty()) {
      lock.unlock();
      over.clear();
      lock.lock();
    } else if (former_.empty()) {
      wake_.wait(lock);
    } else {
      wake_.wait_for(lock, kPause);
    }
  }
}

}  // namespace weir
