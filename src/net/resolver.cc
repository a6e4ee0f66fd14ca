#include "net/resolver.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

namespace weir {

Resolver& Resolver::Shared() {
  static auto* const kShared = new Resolver(&LookUpNow);
  return *kShared;
}

std::unique_ptr<Resolver::Question> Resolver::Ask(const Endpoint& endpoint,
                                                  std::shared_ptr<Mailbox> mailbox, Found found) {
  auto asker = std::make_shared<Question::Asked>();
  asker->found = std::move(found);
  asker->mailbox = std::move(mailbox);
  if (!Add(endpoint, asker)) {
    Answer(asker, std::unexpected(
                      Error{ErrorCode::kOverloaded, "too many names are being looked up already"}));
  }
  return std::unique_ptr<Question>(new Question(std::move(asker)));
}

bool Resolver::Add(const Endpoint& endpoint, const Asked& asker) {
  const std::scoped_lock lock(mutex_);
  if (waiting_ >= kMostWaiting) ForgetUnwanted();
  if (waiting_ >= kMostWaiting) return false;
  ++waiting_;
  const auto same = std::ranges::find_if(names_, [&](const Name& name) {
    return name.endpoint.host == endpoint.host && name.endpoint.port == endpoint.port;
  });
  if (same != names_.end()) {
    same->askers.push_back(asker);
    return true;
  }
  names_.push_back({.endpoint = endpoint, .askers = {asker}});
  ++queued_;
  if (queued_ > idle_ && threads_ < most_threads_) {
    ++threads_;
    std::thread(&Resolver::Run, this).detach();
  }
  wake_.notify_one();
  return true;
}

void Resolver::ForgetUnwanted() {
  waiting_ = queued_ = 0;
  for (auto name = names_.begin(); name != names_.end();) {
    std::erase_if(name->askers, [](const Asked& asker) { return !asker->wanted.load(); });
    // One that is under way is its thread's to end.
    if (name->askers.empty() && !name->is_under_way) {
      name = names_.erase(name);
      continue;
    }
    waiting_ += name->askers.size();
    queued_ += name->is_under_way ? 0U : 1U;
    ++name;
  }
}

std::list<Resolver::Name>::iterator Resolver::NextName() {
  return std::ranges::find_if(names_, [](const Name& name) { return !name.is_under_way; });
}

void Resolver::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return queued_ > 0; });
    --idle_;
    --queued_;
    const auto name = NextName();
    // Those who have gone meanwhile must not hold up the others.
    const bool wanted =
        std::ranges::any_of(name->askers, [](const Asked& a) { return a->wanted.load(); });
    std::optional<Addresses> addresses;
    if (wanted) {
      name->is_under_way = true;
      lock.unlock();
      addresses = source_(name->endpoint);
      lock.lock();
    }
    const std::vector<Asked> askers = std::move(name->askers);
    waiting_ -= askers.size();
    names_.erase(name);
    if (!wanted) continue;
    lock.unlock();
    for (const Asked& asker : askers) Answer(asker, *addresses);
    lock.lock();
  }
}

void Resolver::Answer(const Asked& asker, const Addresses& addresses) {
  asker->mailbox->Post([asker, addresses] {
    // On the asker's thread, where alone the question can be ended.
    if (asker->wanted.load(std::memory_order_relaxed)) asker->found(addresses);
  });
}

}  // namespace weir
