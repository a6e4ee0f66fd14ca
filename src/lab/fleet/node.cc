#include "lab/fleet/node.h"

#include <unordered_map>
#include <utility>

#include "base/mix.h"

namespace weir::lab {
namespace {

class Witness final : public Store, private Completion {
 public:
  // `inner`, if any, stands between this and the client.
  Witness(Store& client, std::unique_ptr<Store> inner, Testimony& testimony)
      : testimony_(testimony),
        inner_(std::move(inner)),
        behind_(inner_ != nullptr ? *inner_ : client) {}

  std::uint64_t Hash(std::string_view key) const noexcept override { return behind_.Hash(key); }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override {
    for (Group& group : groups) {
      told_[&group] = &completion;
      testimony_.OnStoreAsked(group);
    }
    behind_.Submit(groups, now, *this);
  }

 private:
  void OnDecided(Group& group) noexcept override {
    const auto found = told_.find(&group);
    Completion& completion = *found->second;
    told_.erase(found);
    testimony_.OnStoreAnswered(group);
    completion.OnDecided(group);
  }

  Testimony& testimony_;
  std::unordered_map<Group*, Completion*> told_;
  const std::unique_ptr<Store> inner_;  // May tell something at its end.
  Store& behind_;
};

}  // namespace

Node::Node(sim::World& world, sim::Network& network, Testimony& testimony, Options options)
    : loop(world, &network, options.clock),
      options_(std::move(options)),
      clock_(loop),
      hasher_(HashKind::kXxh3, options_.seed),
      testimony_(testimony) {}

std::unique_ptr<Store> Node::MakeWitness(Store& client, Loop& on) {
  std::unique_ptr<Store> inner;
  if (options_.mistake) inner = options_.mistake(client, on);
  return std::make_unique<Witness>(client, std::move(inner), testimony_);
}

Result<void> Node::Start(const Policy& policy) {
  const EngineOptions options{
      .clock = &clock_, .on_notice = options_.on_notice, .max_reservations = 4096};
  ++starts_;
  if (policy.spec().store.front() == "memory") {
    // By a hasher of its own, so that what shares a place in memory is the same in every run.
    engine_.emplace(EngineParts::MakeInMemory(policy, options, hasher_));
  } else {
    RedisPlaceOptions place{.hasher = &hasher_, .seed = Mix(options_.seed + starts_) | 1};
    place.witness = [this](Store& client, Loop& on) { return MakeWitness(client, on); };
    auto made = MakeRedisPlace(policy, options, place);
    if (!made) return std::unexpected(std::move(made.error()));
    engine_.emplace(
        EngineParts::Make(policy, options, *std::move(made), EngineParts::Threads::kNone));
  }
  questions_ = LoopEngine::Make(*engine_, loop);
  return {};
}

void Node::Stop() {
  questions_.reset();
  engine_.reset();
}

void Node::AddCounts(OutcomeCounts& counts) const {
  if (!engine_) return;
  for (const RuleCount& it : engine_->RuleCounts()) {
    counts[{std::string(it.rule), std::string(it.outcome)}] += it.count;
  }
}

}  // namespace weir::lab
