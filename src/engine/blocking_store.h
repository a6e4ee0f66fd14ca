// A store that belongs to a loop, for those who have none: it is kept on a thread of its own, and
// whoever asks waits for the answer, or sends somebody who does and goes on. What several threads
// ask at the same time goes to the store in one turn of its loop.
#pragma once

#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <weir/clock.h>

#include "base/hash.h"
#include "engine/denial_notes.h"
#include "net/epoll_loop.h"
#include "store/store.h"

namespace weir {

// Thread-safe, but must not be asked from its own thread: that would wait for itself. Nobody may be
// asking when it ends.
class BlockingStore final : public Store {
 public:
  using Open = std::function<std::unique_ptr<Store>(Loop&)>;
  // `open` is called once, on the new thread. `timeout` is how long the store takes to answer at
  // most. Everything must outlive this.
  BlockingStore(Clock& clock, const KeyHasher& hasher, Duration timeout, Open open);
  BlockingStore(const BlockingStore&) = delete;
  BlockingStore& operator=(const BlockingStore&) = delete;
  ~BlockingStore() override;

  std::uint64_t Hash(std::string_view key) const noexcept override { return hasher_(key); }
  // Completes before it returns, on the thread that calls.
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;
  // The bans that the denials lead to, as far as they are known by `until`; what is not counted by
  // then is counted all the same.
  std::vector<DenialNotes::Ban> CountDenials(std::shared_ptr<const PolicyVersion> version,
                                             std::vector<DenialNotes::Denied> denied,
                                             SteadyTime until);

  // Waits until the store is settled, for so long at most.
  void AwaitSettled(Duration longest);

  // For those who do not wait: asks on the store's thread, one thing after another, and sees to
  // what comes of it there.
  class Errand : public Completion {
   public:
    virtual void Begin() noexcept = 0;

   protected:
    // OnDecided follows. False when the store ends: then nothing is asked any more.
    bool Ask(Group& group, Now now) noexcept;
    // As DenialNotes does.
    void Count(std::shared_ptr<const PolicyVersion> version,
               std::vector<DenialNotes::Denied> denied, SteadyTime until,
               DenialNotes::Counted counted) noexcept;
    // By the clock that time-outs go by.
    SteadyTime Time() noexcept;
    void StartAnother(std::unique_ptr<Errand> errand) { home_->Start(std::move(errand)); }
    // There is nothing more to do; it is gone then.
    void End() noexcept;

   private:
    friend class BlockingStore;

    BlockingStore* home_ = nullptr;
    std::list<std::unique_ptr<Errand>>::iterator place_{};
  };
  // From any thread. When the store ends it waits for those under way, because they may have to
  // give back what they took; but not for one that is never answered.
  void Start(std::unique_ptr<Errand> errand);

 private:
  class Asking;

  void Run(const Open& open);
  void SubmitAll() noexcept;
  void AwaitErrands();
  // On the thread.
  void TellIfIdle();

  const KeyHasher& hasher_;
  const Duration timeout_;
  EpollLoop loop_;
  std::mutex mutex_;
  std::vector<Asking*> asking_;                    // Not yet handed to the store,
  std::vector<std::unique_ptr<Errand>> starting_;  // nor begun.
  // Of the thread.
  std::unique_ptr<Store> store_;
  std::optional<DenialNotes> denials_;
  std::vector<Asking*> handing_;
  std::list<std::unique_ptr<Errand>> errands_;
  std::shared_ptr<std::promise<void>> idle_;  // Who waits for the last errand.
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace weir
