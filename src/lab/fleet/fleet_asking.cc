// How a fleet is asked, and what it is seen to do.
#include <algorithm>
#include <utility>

#include "lab/fleet/fleet.h"

namespace weir::lab {
namespace {

using std::chrono::milliseconds;

// What stands in a request.
void Fill(const std::map<std::string, std::string>& attributes, Request& request) {
  const auto get = [&](const char* name) -> std::string_view {
    const auto found = attributes.find(name);
    return found == attributes.end() ? std::string_view() : std::string_view(found->second);
  };
  request.ip = get("ip");
  request.user = get("user");
  request.api_key = get("api_key");
  request.org = get("org");
  request.tier = get("tier");
  request.method = get("method");
  request.path = get("path");
  request.host = get("host");
}

bool IsOfRule(const Charge& charge) { return charge.aspect == Aspect::kRule; }

}  // namespace

std::optional<int> Fleet::PickNode(const Client& client) {
  if (client.spec->is_sticky) {
    return NodeAt(client.node).is_up() ? std::optional(client.node) : std::nullopt;
  }
  // As a load balancer that knows who is down.
  const auto first = static_cast<int>(random_.Index(nodes_.size()));
  for (int i = 0; i < record_.nodes; ++i) {
    const int node = (first + i) % record_.nodes;
    if (NodeAt(node).is_up()) return node;
  }
  return std::nullopt;
}

void Fleet::Arrive(int number) {
  Client& client = clients_[static_cast<std::size_t>(number)];
  const std::int64_t cost = client.spec->cost.Draw(random_);
  const std::optional<int> node = PickNode(client);
  if (!node) {
    ++record_.unreached;
    return;
  }
  Asked& asked = record_.asked.emplace_back();
  asked.node = *node;
  asked.client = number;
  asked.at = world_.elapsed();
  // As if it had come over the wire: in a turn of the node's own.
  const int start = starts_at_[static_cast<std::size_t>(*node)];
  NodeAt(*node).loop.Post([this, &asked, cost, start] {
    // Who is restarted meanwhile has never heard of it.
    if (start == starts_at_[static_cast<std::size_t>(asked.node)] && NodeAt(asked.node).is_up()) {
      TakeUp(asked, cost);
    } else {
      asked.is_lost = true;
    }
  });
}

void Fleet::TakeUp(Asked& asked, std::int64_t cost) {
  Client& client = clients_[static_cast<std::size_t>(asked.client)];
  Node& node = NodeAt(asked.node);
  asked.at = world_.elapsed();
  asked.version = VersionAt(asked.node);
  const auto& [expected, uses] = ExpectedOf(asked.client, asked.version);
  asked.uses = uses;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    // Who asks for nothing asks a question, whatever a rule says that a request costs.
    asked.uses[i].cost = cost == 0 ? 0 : expected.uses[i].own_cost.value_or(cost);
  }
  const bool is_single =
      record_.layout == StoreLayout::kRedis || record_.layout == StoreLayout::kSentinel;
  if (is_single && is_failing_[static_cast<std::size_t>(asked.node)]) {
    const StoreHealth health = node.engine().Health();
    asked.breaker_was_open = health.servers.size() == 1 && health.servers.front().breaker_open;
  }
  asking_ = &asked;
  node.questions().Ask({.request = client.request, .cost = cost},
                       [this, &asked](const Told& told) { OnTold(asked, told); });
  asking_ = nullptr;
}

const std::pair<ExpectedUses, std::vector<Use>>& Fleet::ExpectedOf(int number, int version) {
  Client& client = clients_[static_cast<std::size_t>(number)];
  const auto found = client.expected.find(version);
  if (found != client.expected.end()) return found->second;
  Fill(client.attributes, client.request);
  ExpectedUses expected = ExpectUses(policies_[static_cast<std::size_t>(version)], client.request);
  std::vector<Use> uses;
  uses.reserve(expected.uses.size());
  for (const ExpectedUse& it : expected.uses) {
    uses.push_back({.track = TrackOf(it.name, it.key),
                    .limit = LimitOf(it, version),
                    .is_shadow = it.is_shadow,
                    .mode = it.mode});
  }
  return client.expected.emplace(version, std::pair(std::move(expected), std::move(uses)))
      .first->second;
}

int Fleet::TrackOf(const std::string& rule, const std::string& key) {
  const auto [found, is_new] =
      track_numbers_.try_emplace({rule, key}, static_cast<int>(record_.tracks.size()));
  if (is_new) record_.tracks.push_back({rule, key});
  return found->second;
}

// A rule that says the same in another version has the same limit: its keys go on as they were.
int Fleet::LimitOf(const ExpectedUse& use, int version) {
  const auto [found, is_new] = limit_numbers_.try_emplace({use.limit, use.rule, version},
                                                          static_cast<int>(record_.limits.size()));
  if (!is_new) return found->second;
  const auto same = std::ranges::find_if(record_.limits, [&](const LimitNote& it) {
    return it.rule == use.name && it.limit.spec() == use.limit->spec() &&
           it.limit.furthest() == use.limit->furthest() && it.limit.family() == use.limit->family();
  });
  if (same != record_.limits.end()) {
    found->second = static_cast<int>(same - record_.limits.begin());
  } else {
    record_.limits.push_back({use.name, version, *use.limit});
  }
  return found->second;
}

void Fleet::OnStoreAsked(const Group& group) {
  if (peeking_ != nullptr) peeks_[&group] = peeking_;
  const bool is_request = asking_ != nullptr && group.action == Action::kDecide &&
                          !group.charges.empty() && IsOfRule(group.charges.front());
  if (!is_request) return;
  by_group_[&group] = asking_;
  CompareWithCharges(*asking_, group);
  if (record_.layout == StoreLayout::kShards || record_.layout == StoreLayout::kCluster) {
    asking_->is_split = std::ranges::any_of(group.charges, [&](const Charge& charge) {
      return charge.key != group.charges.front().key;
    });
  }
}

// What the engine asks of the store is what the policy in force says, all of it.
void Fleet::CompareWithCharges(Asked& asked, const Group& group) const {
  std::size_t number = 0;
  for (const Charge& charge : group.charges) {
    if (!IsOfRule(charge)) continue;
    if (number >= asked.uses.size()) {
      asked.mixed_up = "more rules were charged than match";
      return;
    }
    const Use& use = asked.uses[number++];
    const Track& track = record_.tracks[static_cast<std::size_t>(use.track)];
    const Limit& limit = record_.limits[static_cast<std::size_t>(use.limit)].limit;
    const LimitSpec& spec = charge.limit->spec();
    const bool is_same_limit = spec.count == limit.spec().count &&
                               spec.algorithm == limit.spec().algorithm &&
                               charge.limit->capacity() == limit.capacity();
    if (charge.rule != track.rule || charge.key != track.key || charge.cost != use.cost ||
        charge.shadow != use.is_shadow || !is_same_limit) {
      asked.mixed_up = "charged " + std::string(charge.rule) + ", " + std::string(charge.key) +
                       ", " + charge.limit->ToString() + " where the policy has " + track.rule +
                       ", " + track.key + ", " + limit.ToString();
      return;
    }
  }
  if (number != asked.uses.size()) asked.mixed_up = "fewer rules were charged than match";
}

void Fleet::OnStoreAnswered(const Group& group) {
  if (const auto peek = peeks_.find(&group); peek != peeks_.end()) {
    if (!group.error) *peek->second = group.decided_at;
    peeks_.erase(peek);
  }
  const auto found = by_group_.find(&group);
  if (found == by_group_.end()) return;
  Asked& asked = *found->second;
  by_group_.erase(found);
  asked.fate = !group.error                                ? Fate::kDecided
               : group.error->code == ErrorCode::kDeadline ? Fate::kUnknown
                                                           : Fate::kFailed;
  asked.decided_at = group.decided_at;
  if (group.error) asked.error = group.error->message;
  is_failing_[static_cast<std::size_t>(asked.node)] = group.error.has_value();
}

void Fleet::OnTold(Asked& asked, const Told& told) {
  if (is_over_) return;
  if (stopping_ == asked.node) {
    asked.is_lost = true;
    return;
  }
  ++asked.answers;
  asked.answered = world_.elapsed();
  const Decision& decision = told.answer.decision;
  asked.allowed = decision.allowed;
  asked.reason = decision.reason;
  asked.source = decision.source;
  if (decision.source == Source::kFallback) {
    asked.fleet_size = NodeAt(asked.node).engine().Health().fleet_size;
  }
  world_.Note(static_cast<std::uint64_t>(decision.allowed) * 16 +
              static_cast<std::uint64_t>(decision.source));
  if (told.answer.rules != asked.uses.size()) {
    asked.mixed_up = std::to_string(told.answer.rules) + " rules decided where " +
                     std::to_string(asked.uses.size()) + " match";
    return;
  }
  for (std::size_t i = 0; i < asked.uses.size(); ++i) {
    Use& use = asked.uses[i];
    const Decision& its = told.each[i].decision;
    use.allowed = its.allowed;
    use.reason = its.reason;
    use.source = its.source;
    use.delay = its.delay;
    const LimitNote& note = record_.limits[static_cast<std::size_t>(use.limit)];
    const bool is_whole = its.source == Source::kStore || its.source == Source::kMemory;
    // A share is smaller, and what is not counted has no capacity.
    const bool has_capacity = note.limit.kind() == LimitKind::kCounted && is_whole;
    if (its.rule != note.rule || (has_capacity && its.limit != note.limit.capacity())) {
      asked.mixed_up = "decided by " + std::string(its.rule) + " of " + std::to_string(its.limit) +
                       " where version " + std::to_string(asked.version + 1) + " has " + note.rule +
                       " of " + std::to_string(note.limit.capacity());
    }
  }
  if (decision.allowed && decision.reservation != ReservationId::kNone) {
    PlanRelease(asked, decision.reservation);
  }
}

void Fleet::PlanRelease(Asked& asked, ReservationId reservation) {
  const Client& client = clients_[static_cast<std::size_t>(asked.client)];
  if (!client.spec->hold) return;
  const int start = starts_at_[static_cast<std::size_t>(asked.node)];
  world_.After(client.spec->hold->Draw(random_), [this, &asked, reservation, start] {
    NodeAt(asked.node).loop.Post([this, &asked, reservation, start] {
      if (start != starts_at_[static_cast<std::size_t>(asked.node)] ||
          !NodeAt(asked.node).is_up()) {
        return;
      }
      asked.released = world_.elapsed();
      NodeAt(asked.node)
          .questions()
          .Ask({.kind = Question::Kind::kCancel, .reservation = reservation},
               [this, &asked](const Told& told) {
                 if (told.error == nullptr) asked.known_released = world_.elapsed();
               });
    });
  });
}

void Fleet::ReadLedgers() {
  // Of so many clients at most: it is the same for all.
  constexpr std::size_t kMost = 200;
  const std::size_t clients = std::min(clients_.size(), kMost);
  for (std::size_t i = 0; i < clients; ++i) {
    for (int node = 0; node < record_.nodes; ++node) {
      if (!NodeAt(node).is_up()) continue;
      ReadLedger(node, static_cast<int>(i), deployment_ != nullptr);
      if (deployment_ != nullptr) break;  // All see the same.
    }
  }
}

void Fleet::ReadLedger(int number, int client_number, bool is_shared) {
  const auto& [expected, uses] = ExpectedOf(client_number, VersionAt(number));
  if (!expected.is_counted || uses.empty()) return;
  struct Seen {
    std::optional<WallTime> at{};
    std::vector<Decision> each{};
  };
  auto seen = std::make_shared<Seen>();
  Node& node = NodeAt(number);
  node.loop.Post([this, &node, client_number, seen] {
    peeking_ = &seen->at;
    const Client& client = clients_[static_cast<std::size_t>(client_number)];
    node.questions().Ask({.kind = Question::Kind::kPeek, .request = client.request, .cost = 0},
                         [seen](const Told& told) {
                           for (const RuleDecision& it : told.each)
                             seen->each.push_back(it.decision);
                         });
    peeking_ = nullptr;
  });
  const Duration asked_at = world_.elapsed();
  world_.RunFor(is_shared ? record_.timeout + milliseconds(5) : Duration(1));
  for (std::size_t i = 0; i < uses.size(); ++i) {
    LedgerNote note{.track = uses[i].track, .limit = uses[i].limit};
    if (!is_shared) note.node = number;
    const bool is_known = std::ranges::any_of(record_.ledger, [&](const LedgerNote& it) {
      return it.track == note.track && it.node == note.node;
    });
    if (is_known) continue;
    note.at = asked_at;
    if (i < seen->each.size() && (!is_shared || seen->at)) {
      const Limit& limit = record_.limits[static_cast<std::size_t>(note.limit)].limit;
      const Decision& its = seen->each[i];
      if (its.reason == Reason::kBanned) continue;  // Which says nothing about what is charged.
      const bool by_store = its.source == (is_shared ? Source::kStore : Source::kMemory);
      if (by_store && limit.kind() == LimitKind::kCounted)
        note.used = limit.capacity() - its.remaining;
      if (is_shared) {
        note.at = *seen->at - sim::SimLoop::Beginning() - record_.server_offset;
      }
    }
    record_.ledger.push_back(note);
  }
}

}  // namespace weir::lab
