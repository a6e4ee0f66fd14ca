// Looks names up on a thread of its own, because the system's way of doing so blocks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <weir/result.h>

#include "net/endpoint.h"
#include "net/mailbox.h"
#include "net/socket_address.h"

namespace weir {

// Thread-safe. Its thread starts with the first question, and stays.
class Resolver {
 public:
  using Addresses = Result<std::vector<SocketAddress>>;
  using Found = std::function<void(const Addresses&)>;
  using Source = std::function<Addresses(const Endpoint&)>;

  // So many may wait; who comes then is refused.
  static constexpr std::size_t kMostWaiting = 4096;

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
  explicit Resolver(Source source) : source_(std::move(source)) {}

  // The answer comes through the mailbox, in a later turn of its loop. Who asks for the same while
  // others still wait for it is answered with them.
  [[nodiscard]] std::unique_ptr<Question> Ask(const Endpoint& endpoint,
                                              std::shared_ptr<Mailbox> mailbox, Found found);

 private:
  using Asked = std::shared_ptr<Question::Asked>;
  struct Name {
    Endpoint endpoint;
    std::vector<Asked> askers;
  };

  static void Answer(const Asked& asker, const Addresses& addresses);
  bool Add(const Endpoint& endpoint, const Asked& asker);
  void ForgetUnwanted();
  void Run();

  const Source source_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Name> names_;   // Under the mutex, as the rest.
  std::size_t waiting_ = 0;  // In all names.
  bool has_thread_ = false;
};

}  // namespace weir
