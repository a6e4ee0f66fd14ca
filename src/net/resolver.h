// Looks names up on threads of its own, because the system's way of doing so blocks: for seconds,
// if a name server does not answer. Few threads, but more than one, so that a name that cannot be
// looked up does not hold up the others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include <weir/result.h>

#include "net/endpoint.h"
#include "net/mailbox.h"
#include "net/socket_address.h"

namespace weir {

// Thread-safe. Its threads start when they are needed, and stay.
class Resolver {
 public:
  using Addresses = Result<std::vector<SocketAddress>>;
  using Found = std::function<void(const Addresses&)>;
  using Source = std::function<Addresses(const Endpoint&)>;

  // So many may wait; who comes then is refused.
  static constexpr std::size_t kMostWaiting = 4096;
  // So many names are looked up at the same time. Each is by one thread only, so that it takes as
  // many names that hang to hold up the rest.
  static constexpr std::size_t kMostThreads = 8;

  // A question under way. Belongs to the thread of the one who asked; once it is ended he is told
  // nothing more.
  class Question {
   public:
    Question(const Question&) = delete;
    Question& operator=(const Question&) = delete;
    ~Question() { asked_->wanted.store(false, std::memory_order_relaxed); }

   private:
    friend class Resolver;
    struct Asked {
      std::atomic<bool> wanted{true};
      Found found{};
      std::shared_ptr<Mailbox> mailbox{};
    };
    explicit Question(std::shared_ptr<Asked> asked) : asked_(std::move(asked)) {}
    const std::shared_ptr<Asked> asked_;
  };

  // The one of the process. Never ended, because a name server that does not answer would keep the
  // process from ending.
  static Resolver& Shared();
  // One that asks somebody else; to be kept for ever if it has been asked anything.
  explicit Resolver(Source source, std::size_t most_threads = kMostThreads)
      : source_(std::move(source)), most_threads_(most_threads) {}

  // The answer comes through the mailbox, in a later turn of its loop. Who asks for the same while
  // others still wait for it is answered with them.
  [[nodiscard]] std::unique_ptr<Question> Ask(const Endpoint& endpoint,
                                              std::shared_ptr<Mailbox> mailbox, Found found);

 private:
  using Asked = std::shared_ptr<Question::Asked>;
  struct Name {
    Endpoint endpoint;
    std::vector<Asked> askers;
    bool is_under_way = false;  // A thread looks it up.
  };

  static void Answer(const Asked& asker, const Addresses& addresses);
  bool Add(const Endpoint& endpoint, const Asked& asker);
  void ForgetUnwanted();
  // The next that no thread looks up yet.
  std::list<Name>::iterator NextName();
  void Run();

  const Source source_;
  const std::size_t most_threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Name> names_;    // Under the mutex, as the rest. Stay where they are.
  std::size_t waiting_ = 0;  // In all names.
  std::size_t queued_ = 0;   // Names that are not under way.
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;  // Of the threads.
};

}  // namespace weir
