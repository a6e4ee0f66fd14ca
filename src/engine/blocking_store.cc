#include "engine/blocking_store.h"

#include <cstdlib>
#include <iterator>
#include <utility>

namespace weir {

// One call of Submit, on the stack of its thread.
class BlockingStore::Asking final : public Completion {
 public:
  Asking(std::span<Group> asked, Now when) noexcept
      : groups(asked), now(when), left_(asked.size()) {}

  // On the store's thread. The last one wakes the caller, with the lock held: the caller ends this
  // as soon as it has it.
  void OnDecided(Group& /*group*/) noexcept override {
    const std::scoped_lock lock(mutex_);
    if (--left_ == 0) done_.notify_one();
  }

  void Await() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return left_ == 0; });
  }

  const std::span<Group> groups;
  const Now now;

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t left_;
};

BlockingStore::BlockingStore(Clock& clock, const KeyHasher& hasher, Duration timeout, Open open)
    : hasher_(hasher), timeout_(timeout), loop_(clock) {
  thread_ = std::thread([this, open = std::move(open)] { Run(open); });
}

BlockingStore::~BlockingStore() {
  AwaitErrands();
  loop_.Stop();
  thread_.join();
}

// At most three questions follow one another: an attempt, and what it booked and what it occupies
// given back.
void BlockingStore::AwaitErrands() {
  const auto idle = std::make_shared<std::promise<void>>();
  const std::future<void> is_idle = idle->get_future();
  loop_.Post([this, idle] {
    idle_ = idle;
    TellIfIdle();
  });
  is_idle.wait_for(3 * timeout_);
}

void BlockingStore::TellIfIdle() {
  if (!idle_ || !errands_.empty()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (!starting_.empty()) return;
  }
  idle_->set_value();
  idle_.reset();
}

void BlockingStore::Run(const Open& open) {
  store_ = open(loop_);
  denials_.emplace(*store_, loop_);
  loop_.Run();
  ending_ = true;
  denials_->Close();
  store_.reset();
  errands_.clear();
  denials_.reset();
}

void BlockingStore::Submit(std::span<Group> groups, Now now, Completion& completion) noexcept {
  if (groups.empty()) return;
  // Waiting for oneself would be for ever; better to be told where.
  if (std::this_thread::get_id() == thread_.get_id()) std::abort();
  Asking asking(groups, now);
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    first = asking_.empty() && starting_.empty();
    asking_.push_back(&asking);
  }
  if (first) loop_.Post([this] { SubmitAll(); });
  asking.Await();
  for (Group& group : groups) completion.OnDecided(group);
}

std::vector<DenialNotes::Ban> BlockingStore::CountDenials(
    std::shared_ptr<const PolicyVersion> version, std::vector<DenialNotes::Denied> denied,
    SteadyTime until) {
  if (std::this_thread::get_id() == thread_.get_id()) std::abort();
  using Bans = std::vector<DenialNotes::Ban>;
  // Shared, because it is still being used when it wakes who waits.
  const auto told = std::make_shared<std::promise<Bans>>();
  std::future<Bans> bans = told->get_future();
  loop_.Post([&] {
    denials_->Count(std::move(version), std::move(denied), until,
                    [told](std::span<const DenialNotes::Ban> found) {
                      told->set_value(Bans(found.begin(), found.end()));
                    });
  });
  return bans.get();
}

void BlockingStore::AwaitSettled(Duration longest) {
  constexpr Duration kLook = std::chrono::milliseconds(2);
  for (Duration waited{0}; waited < longest; waited += kLook) {
    const auto told = std::make_shared<std::promise<bool>>();
    std::future<bool> is_settled = told->get_future();
    loop_.Post([this, told] { told->set_value(store_->IsSettled()); });
    if (is_settled.get()) return;
    std::this_thread::sleep_for(kLook);
  }
}

void BlockingStore::Start(std::unique_ptr<Errand> errand) {
  errand->home_ = this;
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    first = asking_.empty() && starting_.empty();
    starting_.push_back(std::move(errand));
  }
  if (first) loop_.Post([this] { SubmitAll(); });
}

bool BlockingStore::Errand::Ask(Group& group, Now now) noexcept {
  if (home_->ending_) return false;
  home_->store_->Submit({&group, 1}, now, *this);
  return true;
}

void BlockingStore::Errand::Count(std::shared_ptr<const PolicyVersion> version,
                                  std::vector<DenialNotes::Denied> denied, SteadyTime until,
                                  DenialNotes::Counted counted) noexcept {
  home_->denials_->Count(std::move(version), std::move(denied), until, std::move(counted));
}

SteadyTime BlockingStore::Errand::Time() noexcept { return home_->loop_.now().steady; }

void BlockingStore::Errand::End() noexcept {
  BlockingStore& home = *home_;
  home.errands_.erase(place_);
  home.TellIfIdle();
}

void BlockingStore::SubmitAll() noexcept {
  std::vector<std::unique_ptr<Errand>> starting;
  {
    const std::scoped_lock lock(mutex_);
    handing_.swap(asking_);
    starting.swap(starting_);
  }
  std::vector<Errand*> begun;
  begun.reserve(starting.size());
  for (std::unique_ptr<Errand>& errand : starting) {
    begun.push_back(errand.get());
    errands_.push_back(std::move(errand));
    begun.back()->place_ = std::prev(errands_.end());
  }
  // Each may end at once; the others are under way then all the same.
  for (Errand* const errand : begun) errand->Begin();
  for (Asking* const asking : std::exchange(handing_, {})) {
    store_->Submit(asking->groups, asking->now, *asking);
  }
}

}  // namespace weir
