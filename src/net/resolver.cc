#include "net/resolver.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace weir {

Resolver& Resolver::Shared() {
  static Resolver* const shared = new Resolver(&LookUpNow);
  return *shared;
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
  if (!std::exchange(has_thread_, true)) std::thread(&Resolver::Run, this).detach();
  wake_.notify_one();
  return true;
}

void Resolver::ForgetUnwanted() {
  waiting_ = 0;
  for (Name& name : names_) {
    std::erase_if(name.askers, [](const Asked& asker) { return !asker->wanted.load(); });
    waiting_ += name.askers.size();
  }
  std::erase_if(names_, [](const Name& name) { return name.askers.empty(); });
}

void Resolver::Run() {
  while (true) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !names_.empty(); });
    const Name name = std::move(names_.front());
    names_.pop_front();
    waiting_ -= name.askers.size();
    lock.unlock();
    // Those who have gone meanwhile must not hold up the others.
    if (std::ranges::none_of(name.askers, [](const Asked& a) { return a->wanted.load(); }))
      continue;
    const Addresses addresses = source_(name.endpoint);
    for (const Asked& asker : name.askers) Answer(asker, addresses);
  }
}

void Resolver::Answer(const Asked& asker, const Addresses& addresses) {
  asker->mailbox->Post([asker, addresses] {
    // On the asker's thread, where alone the question can be ended.
    if (asker->wanted.load(std::memory_order_relaxed)) asker->found(addresses);
  });
}

}  // namespace weir
