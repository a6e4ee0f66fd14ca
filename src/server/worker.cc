#include "server/worker.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

// How often deadlines are looked at: often enough for the shortest of them.
Duration SweepInterval(const ServiceLimits& limits) {
  const Duration shortest =
      std::min({limits.idle_timeout, limits.header_timeout, limits.write_timeout});
  return std::clamp<Duration>(shortest / 4, std::chrono::milliseconds(20), std::chrono::seconds(1));
}
constexpr Duration kDrainSweep = std::chrono::milliseconds(20);

}  // namespace

Worker::Worker(Engine& engine, Clock& clock, Gate& gate, const ServiceState& state,
               std::shared_ptr<const Settings> settings)
    : gate_(gate),
      loop_(clock),
      questions_(LoopEngine::Make(engine, loop_)),
      desk_{.engine = engine,
            .loop = loop_,
            .state = state,
            .settings = std::move(settings),
            .limits = LimitCache(questions_->is_shared()),
            .questions = questions_.get()},
      sweep_(loop_.MakeTimer([this] { Sweep(); })) {}

Worker::~Worker() {
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
  mailbox_->Close();
  connections_.clear();
  doorways_.clear();
  // Its end answers what is still under way, and nobody is left who wants to know.
  desk_.ending = true;
  questions_.reset();
  loop_.ForgetTurnEnd(*this);
}

void Worker::Add(const Entrance& entrance, ListeningSocket socket) {
  Doorway& doorway = *doorways_.emplace_back(std::make_unique<Doorway>(desk_, entrance));
  doorway.acceptor = loop_.Accept(
      std::move(socket),
      [this, &doorway](std::unique_ptr<Stream> stream) { Receive(doorway, std::move(stream)); });
}

void Worker::Start() {
  sweep_->Start(SweepInterval(desk_.settings->limits));
  thread_ = std::thread([this] {
    loop_.Run();
    has_ended_.store(true, std::memory_order_release);
  });
}

void Worker::Apply(std::shared_ptr<const Settings> settings) {
  loop_.Post([this, settings = std::move(settings)] {
    desk_.settings = settings;
    questions_->TakeUpStore();
    desk_.limits.SetShared(questions_->is_shared());
  });
}

void Worker::Apply(std::size_t entrance, const Credentials& credentials) {
  loop_.Post([this, entrance, credentials] {
    Doorway& doorway = *doorways_[entrance];
    doorway.door.access = credentials.access;
    doorway.entrance.credentials = credentials;
  });
}

void Worker::Drain(Duration deadline) {
  loop_.Post([this, deadline] { BeginDrain(deadline); });
}

void Worker::Join() {
  if (thread_.joinable()) thread_.join();
}

bool Worker::IsAlive() {
  return has_ended_.load(std::memory_order_acquire) || witness_.HasTurned();
}

void Worker::Receive(Doorway& doorway, std::unique_ptr<Stream> stream) {
  if (const std::optional<Refusal> refusal = gate_.Enter(stream->peer())) {
    return TurnAway(doorway, *stream, *refusal);
  }
  if (doorway.entrance.credentials.tls) stream = WithTls(doorway, std::move(stream));
  const std::uint64_t id = ++last_id_;
  const auto [place, is_new] = connections_.emplace(
      id, std::make_unique<Connection>(
              Connection::Surroundings{.keeper = *this, .gate = gate_, .door = doorway.door}, id,
              std::move(stream), doorway.entrance.make_protocol));
  if (draining_) place->second->Drain(loop_.now().steady);
  place->second->Start();
}

void Worker::TurnAway(Doorway& doorway, Stream& stream, Refusal why) {
  doorway.metrics.Refused(why);
  // A handshake costs more than somebody is worth who is not let in.
  if (!doorway.entrance.credentials.tls) std::ignore = stream.Write(doorway.entrance.refusal);
  stream.FinishWriting();
}

std::unique_ptr<Stream> Worker::WithTls(Doorway& doorway, std::unique_ptr<Stream> stream) {
  const auto on_failure = [this, &doorway](const TlsFailure& failure) {
    doorway.metrics.Refused(failure.too_slow ? Refusal::kHeaderTimeout : Refusal::kTls);
    if (!failure.too_slow) doorway.entrance.handshake_log->Note(loop_.now().steady, failure);
  };
  return AcceptTls(loop_, std::move(stream), doorway.entrance.credentials.tls,
                   {.patience = desk_.settings->limits.header_timeout, .on_failure = on_failure});
}

void Worker::Remove(std::uint64_t id) noexcept { connections_.erase(id); }

Connection* Worker::Find(std::uint64_t id) noexcept {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Worker::CallAtTurnEnd(std::uint64_t id) {
  if (at_turn_end_.empty()) loop_.AtTurnEnd(*this);
  at_turn_end_.push_back(id);
}

void Worker::OnTurnEnd() noexcept {
  called_.clear();
  std::swap(called_, at_turn_end_);
  for (const std::uint64_t id : called_) {
    if (Connection* const connection = Find(id)) connection->OnTurnEnd();
  }
}

void Worker::Sweep() {
  const SteadyTime now = loop_.now().steady;
  const bool too_late = draining_ && now >= drain_deadline_;
  // By their ids, because each may end itself, and others with it.
  looked_at_.clear();
  for (const auto& [id, connection] : connections_) looked_at_.push_back(id);
  for (const std::uint64_t id : looked_at_) {
    if (Connection* const connection = Find(id)) connection->CheckDeadlines(now);
    if (!too_late) continue;
    if (Connection* const connection = Find(id)) connection->EndDrain();
  }
  if (draining_) CloseDoors();
  const bool lingered = too_late && now >= drain_deadline_ + std::chrono::seconds(1);
  const bool all_done = connections_.empty() && questions_->pending() == 0;
  if (draining_ && (all_done || lingered)) return loop_.Stop();
  sweep_->Start(draining_ ? kDrainSweep : SweepInterval(desk_.settings->limits));
}

void Worker::BeginDrain(Duration deadline) {
  draining_ = true;
  drain_deadline_ = loop_.now().steady + deadline;
  for (const auto& [id, connection] : connections_) connection->Drain(loop_.now().steady);
  for (const auto& doorway : doorways_) doorway->acceptor->AcceptLast();
  sweep_->Start(kDrainSweep);
}

// A moment after the others were taken in: some were only just about to connect.
void Worker::CloseDoors() {
  for (const auto& doorway : doorways_) {
    if (!doorway->acceptor) continue;
    doorway->acceptor->AcceptLast();
    doorway->acceptor.reset();
  }
}

}  // namespace weir
