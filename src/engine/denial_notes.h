// Denials under rules that ban, counted by a store that takes a while to answer: that takes several
// questions, one after the other. Whoever was denied waits for them no longer than he would have
// waited for the store's first answer. A count that takes longer goes on by itself, so that a ban
// it leads to is noted all the same, and is in force for the next request.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/call.h"
#include "engine/policy_version.h"
#include "net/loop.h"
#include "store/store.h"

namespace weir {

// Belongs to the loop's thread.
class DenialNotes {
 public:
  struct Denied {
    std::size_t number;  // Of the rule, in its call.
    Call::Denial denial;
    std::string subject;  // Whom the rule counts.
  };
  struct Ban {
    std::size_t number;
    Duration length;
  };
  // With the bans that are known by then.
  using Counted = std::function<void(std::span<const Ban>)>;

  DenialNotes(Store& store, Loop& loop);
  DenialNotes(const DenialNotes&) = delete;
  DenialNotes& operator=(const DenialNotes&) = delete;
  // The store has ended before.
  ~DenialNotes();

  // All that the rules of a prepared and decided call ask for. Ordinary calls have none.
  template <std::size_t kRoom>
  static std::vector<Denied> Of(CallWithRoom<kRoom>& call);

  // `counted` is called once: as soon as all is counted, at `until` at the latest; before this
  // returns, if that has passed.
  void Count(std::shared_ptr<const PolicyVersion> version, std::vector<Denied> denied,
             SteadyTime until, Counted counted);

  // Before the store ends: nothing more is asked, and those who wait are told.
  void Close();

 private:
  class Request;

  Store& store_;
  Loop& loop_;
  bool is_closed_ = false;
  std::unordered_map<Request*, std::unique_ptr<Request>> requests_;
};

}  // namespace weir
