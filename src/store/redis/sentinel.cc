#include "store/redis/sentinel.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "net/resp/writer.h"

namespace weir::redis {
namespace {

// Between two questions for the master: while all is well, and at least.
constexpr Duration kMasterPauseWhenWell = std::chrono::seconds(1);
constexpr Duration kLeastMasterPause = std::chrono::milliseconds(50);

}  // namespace

// The answer is host and port as two texts, or nothing if the name is not known.
class SentinelMaster::MasterCall final : public Call {
 public:
  explicit MasterCall(SentinelMaster& owner) noexcept : owner_(owner) {}

  void Write(ByteBuffer& out) override {
    const std::array<std::string_view, 3> words = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                                                   owner_.maker_.settings.master_name};
    resp::WriteCommand(out, words);
  }
  bool Take(const resp::ReplyItem& item) noexcept override {
    using Kind = resp::ReplyItem::Kind;
    if (item.depth == 0) return item.kind == Kind::kNull || item.count == 2;
    if (item.kind != Kind::kBulk || item.text.size() > 255) return false;
    if (taken_++ == 0) {
      master_.host = item.text;
      return !master_.host.empty();
    }
    const char* const end = item.text.data() + item.text.size();
    const auto [read, error] = std::from_chars(item.text.data(), end, master_.port);
    return error == std::errc() && read == end;
  }
  void Ended(std::unique_ptr<Call>, Node&, CallEnd end) noexcept override {
    owner_.is_asking_ = false;
    if (end.kind != CallEnd::Kind::kAnswered) return owner_.OnNotTold(end);
    if (taken_ == 0) return owner_.OnUnknownName();
    owner_.OnTold(master_);
  }
  std::uint64_t weight() const noexcept override { return 0; }

 private:
  SentinelMaster& owner_;
  Endpoint master_;
  int taken_ = 0;
};

SentinelMaster::SentinelMaster(NodeMaker maker)
    : maker_(std::move(maker)),
      jitter_(maker_.registry.NextSeed()),
      timer_(maker_.loop.MakeTimer([this] { Tick(); })) {
  for (const Site& site : maker_.settings.sites) {
    Node::Options options = maker_.Options();
    options.connections = 1;
    options.is_sentinel = true;
    sentinels_.push_back(maker_.Make(site, std::move(options), *this));
  }
  ask_at_ = Time() + kPauseWhenNotWell;
  WakeBy(ask_at_);
}

SentinelMaster::~SentinelMaster() {
  timer_ = nullptr;
  is_asking_ = true;  // Nobody is asked any more.
  master_ = nullptr;
  former_.clear();
  sentinels_.clear();
}

std::optional<Obstacle> SentinelMaster::WhyUnknown() noexcept {
  if (refusal_) return refusal_;
  std::optional<Obstacle> obstacle;
  for (const auto& sentinel : sentinels_) {
    obstacle = sentinel->WhyNot();
    if (!obstacle) return std::nullopt;
  }
  return obstacle;
}

void SentinelMaster::OnTrouble(Node& node) noexcept {
  if (&node == master_.get()) AskAnother();
}

void SentinelMaster::OnReady(Node&) noexcept {
  if (master_ == nullptr) Ask();
}

// The one that was asked may know less than the others.
void SentinelMaster::AskAnother() noexcept {
  const SteadyTime now = Time();
  const SteadyTime earliest = asked_at_ == SteadyTime::min() ? now : asked_at_ + kLeastMasterPause;
  ++next_;
  ask_at_ = std::min(ask_at_, std::max(now, earliest));
  WakeBy(ask_at_);
}

void SentinelMaster::Ask() {
  if (is_asking_) return;
  for (std::size_t i = 0; i < sentinels_.size(); ++i) {
    Node& sentinel = *sentinels_[(next_ + i) % sentinels_.size()];
    if (!sentinel.is_ready() || sentinel.WhyNot()) continue;
    next_ = (next_ + i) % sentinels_.size();
    is_asking_ = true;
    asked_at_ = Time();
    auto call = std::make_unique<MasterCall>(*this);
    call->deadline = Time() + maker_.settings.connect_timeout;
    return sentinel.Send(std::move(call));
  }
}

void SentinelMaster::OnTold(const Endpoint& master) {
  refusal_.reset();
  if (master_ != nullptr && master_->site().endpoint.ToString() == master.ToString()) return;
  std::unique_ptr<Node> next = TakeFormer(master);
  if (next == nullptr) next = MakeMaster(master);
  if (master_ != nullptr) former_.push_back({std::move(master_), Time()});
  master_ = std::move(next);
  maker_.on_news();
}

std::unique_ptr<Node> SentinelMaster::MakeMaster(const Endpoint& master) {
  Node::Options options = maker_.Options();
  options.make_probe = [this] { return maker_.make_probe(std::nullopt); };
  const Site site{.endpoint = master,
                  .credentials = maker_.settings.master_credentials,
                  .database = maker_.settings.master_database,
                  .tls = maker_.settings.sites.front().tls};
  return maker_.Make(site, std::move(options), *this);
}

std::unique_ptr<Node> SentinelMaster::TakeFormer(const Endpoint& master) {
  const auto found = std::ranges::find_if(former_, [&](const Former& former) {
    return former.node->site().endpoint.ToString() == master.ToString();
  });
  if (found == former_.end()) return nullptr;
  std::unique_ptr<Node> node = std::move(found->node);
  former_.erase(found);
  return node;
}

void SentinelMaster::OnUnknownName() {
  if (master_ == nullptr) {
    const std::string text = "no sentinel knows the master " + maker_.settings.master_name;
    refusal_ = Obstacle{StoreFault::kOther, {ErrorCode::kOverloaded, text}};
    maker_.registry.Tell("sentinel", text);
  }
  AskAnother();
}

void SentinelMaster::OnNotTold(const CallEnd& end) noexcept {
  if (end.kind == CallEnd::Kind::kErrorReply) {
    maker_.registry.Tell("sentinel", end.error.message);
    if (master_ == nullptr) refusal_ = Obstacle{end.fault, end.error};
  }
  AskAnother();
}

void SentinelMaster::Tick() {
  wake_at_.reset();
  const SteadyTime now = Time();
  std::erase_if(former_, [&](const Former& former) {
    return former.since + kFormerKeptFor < now && former.node->is_idle();
  });
  if (ask_at_ <= now) {
    const bool is_well = master_ != nullptr && master_->is_ready();
    const Duration pause = is_well ? kMasterPauseWhenWell : kPauseWhenNotWell;
    ask_at_ = now + pause / 2 + jitter_.UpTo(pause / 2);
    Ask();
  }
  WakeBy(ask_at_);
}

void SentinelMaster::WakeBy(SteadyTime when) {
  if (timer_ == nullptr || (wake_at_ && *wake_at_ <= when)) return;
  wake_at_ = when;
  timer_->Start(std::max(Duration(0), when - Time()));
}

}  // namespace weir::redis
