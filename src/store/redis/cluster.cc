#include "store/redis/cluster.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "net/resp/writer.h"
#include "store/redis/slots.h"

namespace weir::redis {
namespace {

// Between two questions for the slots: while all is well, and at least.
constexpr Duration kSlotsPauseWhenWell = std::chrono::seconds(10);
constexpr Duration kLeastSlotsPause = std::chrono::milliseconds(100);
// No cluster has more; who points to more is not to be believed.
constexpr std::size_t kMostMembers = 2'048;

}  // namespace

class Cluster::SlotsCall final : public Call {
 public:
  explicit SlotsCall(Cluster& cluster) noexcept : cluster_(cluster) {}

  void Write(ByteBuffer& out) override {
    constexpr std::array<std::string_view, 2> kWords = {"CLUSTER", "SLOTS"};
    resp::WriteCommand(out, kWords);
  }
  bool Take(const resp::ReplyItem& item) noexcept override { return slots_.Take(item); }
  void Ended(std::unique_ptr<Call>, Node& node, CallEnd end) noexcept override {
    cluster_.is_asking_ = false;
    if (end.kind != CallEnd::Kind::kAnswered) return cluster_.OnNotTold(end);
    cluster_.OnTold(slots_.ranges(), node);
  }
  std::uint64_t weight() const noexcept override { return 0; }

 private:
  Cluster& cluster_;
  ClusterSlots slots_;
};

Cluster::Cluster(NodeMaker maker)
    : maker_(std::move(maker)),
      jitter_(maker_.registry.NextSeed()),
      owners_(kSlots, nullptr),
      timer_(maker_.loop.MakeTimer([this] { Tick(); })) {
  AddSeeds();
  ask_at_ = Time() + kPauseWhenNotWell;
  WakeBy(ask_at_);
}

Cluster::~Cluster() {
  timer_ = nullptr;
  is_asking_ = true;  // Nobody is asked any more.
  members_.clear();
}

void Cluster::AddSeeds() {
  for (const Site& site : maker_.settings.sites) MemberAt(site);
}

Node& Cluster::MemberAt(const Site& site) {
  Member& member = members_[site.endpoint.ToString()];
  if (member.node == nullptr) {
    Node::Options options = maker_.Options();
    Member* const self = &member;  // Stays where it is as long as it has a node.
    options.make_probe = [this, self] { return maker_.make_probe(SlotOf(*self->node)); };
    member.node = maker_.Make(site, std::move(options), *this);
    member.unlisted = Time();
  } else if (member.unlisted) {
    member.unlisted = Time();  // Somebody has just spoken of it.
  }
  return *member.node;
}

std::optional<std::uint16_t> Cluster::SlotOf(const Node& node) const noexcept {
  const auto found = std::ranges::find(owners_, &node);
  if (found == owners_.end()) return std::nullopt;
  return static_cast<std::uint16_t>(found - owners_.begin());
}

std::optional<Obstacle> Cluster::WhyUnknown() noexcept {
  if (has_map_) {
    AskSoon();
    return Obstacle{StoreFault::kClusterDown,
                    {ErrorCode::kOverloaded, "no server of the cluster has the slot"}};
  }
  if (refusal_) return refusal_;
  std::optional<Obstacle> obstacle;
  for (auto& [name, member] : members_) {
    obstacle = member.node->WhyNot();
    if (!obstacle) return std::nullopt;
  }
  return obstacle;
}

Node* Cluster::FindPointedTo(const Endpoint& site, Node& asked) {
  AskSoon();
  if (site.port == 0 || members_.size() >= kMostMembers) return nullptr;
  Site there = asked.site();
  there.endpoint.port = site.port;
  if (!site.host.empty()) there.endpoint.host = site.host;
  return &MemberAt(there);
}

void Cluster::Move(std::uint16_t slot, Node& there) noexcept {
  Remember(owners_[slot]);
  owners_[slot] = &there;
  AskSoon();
}

// What was gathered for it in this turn has still to be sent.
void Cluster::Remember(const Node* owner) noexcept {
  for (auto& [name, member] : members_) {
    if (member.node.get() == owner && member.unlisted) member.unlisted = Time();
  }
}

bool Cluster::IsWell() const noexcept {
  return has_map_ && std::ranges::none_of(members_, [](const auto& member) {
           return !member.second.unlisted && !member.second.node->is_ready();
         });
}

bool Cluster::IsSettled() noexcept {
  if (!has_map_) return WhyUnknown().has_value();
  return std::ranges::all_of(members_, [](auto& member) {
    return member.second.unlisted || member.second.node->IsSettled();
  });
}

void Cluster::OnReady(Node&) noexcept {
  if (!has_map_) Ask();
}

void Cluster::AskSoon() noexcept {
  const SteadyTime now = Time();
  const SteadyTime earliest = asked_at_ == SteadyTime::min() ? now : asked_at_ + kLeastSlotsPause;
  ask_at_ = std::min(ask_at_, std::max(now, earliest));
  WakeBy(ask_at_);
}

// One after the other, so that one that is cut off from the rest does not have the only say.
void Cluster::Ask() {
  if (is_asking_) return;
  Node* next = nullptr;
  Node* first = nullptr;
  for (auto& [name, member] : members_) {
    if (!member.node->is_ready() || member.node->WhyNot()) continue;
    if (first == nullptr) first = member.node.get();
    if (next == nullptr && name > asked_last_) next = member.node.get();
  }
  if (next == nullptr) next = first;
  if (next == nullptr) return AddSeeds();
  is_asking_ = true;
  asked_last_ = next->name();
  asked_at_ = Time();
  auto call = std::make_unique<SlotsCall>(*this);
  call->deadline = Time() + maker_.settings.connect_timeout;
  next->Send(std::move(call));
}

void Cluster::OnNotTold(const CallEnd& end) noexcept {
  if (end.kind == CallEnd::Kind::kErrorReply && !has_map_) {
    refusal_ = Obstacle{end.fault, end.error};
    maker_.registry.Tell("cluster", "CLUSTER SLOTS: " + end.error.message);
  }
  AskSoon();
}

void Cluster::OnTold(const std::vector<SlotRange>& ranges, const Node& asked) {
  refusal_.reset();
  std::vector<Node*> owners(kSlots, nullptr);
  std::unordered_set<const Node*> listed;
  for (const SlotRange& range : ranges) {
    if (range.master.port == 0 || members_.size() >= kMostMembers) continue;
    Site site = asked.site();
    site.endpoint = {.host = range.master.host.empty() ? site.endpoint.host : range.master.host,
                     .port = range.master.port,
                     .path = {}};
    Node& node = MemberAt(site);
    listed.insert(&node);
    std::fill(owners.begin() + range.first, owners.begin() + range.last + 1, &node);
  }
  if (listed.empty()) return;  // One that is alone knows nothing.
  for (const Node* const owner : std::unordered_set(owners_.begin(), owners_.end())) {
    Remember(owner);
  }
  owners_ = std::move(owners);
  has_map_ = true;
  const SteadyTime now = Time();
  for (auto& [name, member] : members_) {
    if (listed.contains(member.node.get())) {
      member.unlisted.reset();
    } else if (!member.unlisted) {
      member.unlisted = now;
    }
  }
  maker_.on_news();
}

void Cluster::DropUnlisted(SteadyTime now) {
  if (!has_map_) return;
  std::erase_if(members_, [&](const auto& entry) {
    const Member& member = entry.second;
    return member.unlisted && *member.unlisted + kFormerKeptFor < now && member.node->is_idle() &&
           !SlotOf(*member.node);
  });
}

void Cluster::Tick() {
  wake_at_.reset();
  const SteadyTime now = Time();
  DropUnlisted(now);
  if (ask_at_ <= now) {
    const Duration pause = IsWell() ? kSlotsPauseWhenWell : kPauseWhenNotWell;
    ask_at_ = now + pause / 2 + jitter_.UpTo(pause / 2);
    Ask();
  }
  WakeBy(ask_at_);
}

void Cluster::WakeBy(SteadyTime when) {
  if (timer_ == nullptr || (wake_at_ && *wake_at_ <= when)) return;
  wake_at_ = when;
  timer_->Start(std::max(Duration(0), when - Time()));
}

}  // namespace weir::redis
