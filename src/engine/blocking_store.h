// A store that belongs to a loop, for those who have none: it is kept on a thread of its own, and
// whoever asks waits for the answer. What several threads ask at the same time goes to the store in
// one turn of its loop.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
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
  // `open` is called once, on the new thread. Everything must outlive this.
  BlockingStore(Clock& clock, const KeyHasher& hasher, Open open);
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

 private:
  class Asking;

  void Run(const Open& open);
  void SubmitAll() noexcept;

  const KeyHasher& hasher_;
  EpollLoop loop_;
  std::unique_ptr<Store> store_;        // Of the thread.
  std::optional<DenialNotes> denials_;  // Likewise.
  std::mutex mutex_;
  std::vector<Asking*> asking_;   // Not yet handed to the store.
  std::vector<Asking*> handing_;  // Of the thread.
  std::thread thread_;
};

}  // namespace weir
