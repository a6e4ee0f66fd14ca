#include "store/redis/node.h"

#include <algorithm>
#include <utility>

#include "store/redis/server_check.h"

namespace weir::redis {
namespace {

constexpr Duration kFirstBackOff = std::chrono::milliseconds(50);
constexpr Duration kLongestBackOff = std::chrono::seconds(1);
// A server that forgets the script again and again within one deadline is not to be helped.
constexpr int kMostRounds = 16;
// With one under way a server is idle while the next is on its way; more than a few only queue.
constexpr std::size_t kBusyCalls = 4;

}  // namespace

Node::Node(Loop& loop, Site site, Options options, Registry& registry, Watcher& watcher)
    : loop_(loop),
      site_(std::move(site)),
      options_(std::move(options)),
      registry_(registry),
      watcher_(watcher),
      record_(registry.Find(site_.endpoint.ToString())),
      seen_(record_->Lend()),
      jitter_(registry.NextSeed()),
      lanes_(static_cast<std::size_t>(std::max(1, options_.connections))),
      timer_(loop.MakeTimer([this] { Tick(); })) {
  WakeBy(Time());
}

Node::~Node() {
  is_ending_ = true;
  if (is_probing_) EndProbe(false);
  const Error error{ErrorCode::kOverloaded, name() + ": the store is being closed"};
  for (Lane& lane : lanes_) {
    if (lane.connection == nullptr) continue;
    for (auto& call : lane.connection->Close()) FailCall(std::move(call), StoreFault::kLost, error);
  }
  FailQueued(StoreFault::kLost, error);
  record_->GiveBack(seen_);
}

Node::Lane& Node::LaneOf(const Connection& connection) noexcept {
  return *std::ranges::find(lanes_, &connection, [](const Lane& lane) {
    return static_cast<const Connection*>(lane.connection.get());
  });
}

bool Node::IsLive(const Lane& lane) noexcept {
  return lane.connection != nullptr && !lane.connection->is_over();
}

bool Node::IsUsable(const Lane& lane) noexcept {
  return lane.connection != nullptr && lane.connection->is_ready() && !lane.is_retiring;
}

bool Node::is_ready() const noexcept { return std::ranges::any_of(lanes_, IsUsable); }

bool Node::is_idle() const noexcept {
  return queue_.empty() && std::ranges::none_of(lanes_, [](const Lane& lane) {
           return IsLive(lane) && lane.connection->in_flight() > 0;
         });
}

bool Node::is_busy() const noexcept {
  return is_ready() && std::ranges::none_of(lanes_, [](const Lane& lane) {
           return IsUsable(lane) && lane.connection->in_flight() < kBusyCalls;
         });
}

// Calls that were given up count as well, until they are answered: the server still has them to do.
Node::Lane* Node::LaneWithRoom(std::uint64_t weight) noexcept {
  Lane* best = nullptr;
  for (Lane& lane : lanes_) {
    if (!IsUsable(lane)) continue;
    const Connection& connection = *lane.connection;
    const bool fits =
        connection.in_flight() < options_.max_in_flight &&
        (connection.load() == 0 || connection.load() + weight <= options_.max_in_flight);
    if (fits && (best == nullptr || connection.load() < best->connection->load())) best = &lane;
  }
  return best;
}

// Waiting is worth it while the last attempt to connect has not failed, and the next one, if one is
// needed, comes in time.
bool Node::HasHope() noexcept {
  const SteadyTime soon = Time() + options_.timeout;
  return std::ranges::any_of(lanes_, [soon](const Lane& lane) {
    return IsUsable(lane) || (lane.failures == 0 && (IsLive(lane) || lane.retry_at < soon));
  });
}

std::optional<Obstacle> Node::WhyNot() noexcept {
  if (!record_->breaker().IsClosed()) {
    for (Lane& lane : lanes_) lane.waits_for_breaker = !IsLive(lane);
    // Whoever opened it may be gone.
    WakeBy(Time() + record_->breaker().UntilProbe(Time()));
    return Obstacle{StoreFault::kBreaker,
                    {ErrorCode::kOverloaded, name() + ": not asked, because it failed before"}};
  }
  // Whoever closed the breaker need not have been this thread: then nothing is being connected,
  // even if there is hope. Nor need it wait any longer: calls would be queued until their time is
  // up, and count against a server that is well; or else this thread would go on deciding in the
  // store's place while others ask the store, and a key would be counted twice.
  for (Lane& lane : lanes_) {
    if (IsLive(lane)) continue;
    if (std::exchange(lane.waits_for_breaker, false)) lane.retry_at = Time();
    if (lane.retry_at <= Time()) WakeBy(Time());
  }
  if (HasHope()) return std::nullopt;
  return last_;
}

void Node::Send(std::unique_ptr<Call> call) noexcept {
  if (!call->is_probe) {
    if (const std::optional<Obstacle> obstacle = WhyNot()) {
      return FailCall(std::move(call), obstacle->fault, obstacle->error);
    }
  }
  WakeBy(call->deadline);
  const std::uint64_t weight = call->weight();
  if (Lane* const lane = queue_.empty() ? LaneWithRoom(weight) : nullptr) {
    lane->connection->Send(std::move(call));
    return ShowCounts();
  }
  if (queued_ + weight > options_.max_in_flight * lanes_.size()) {
    return FailCall(std::move(call), StoreFault::kOverload,
                    {ErrorCode::kOverloaded, name() + ": too many calls are under way"});
  }
  queued_ += weight;
  queue_.push_back(std::move(call));
}

void Node::SendQueued() {
  while (!queue_.empty()) {
    Lane* const lane = LaneWithRoom(queue_.front()->weight());
    if (lane == nullptr) return;
    std::unique_ptr<Call> call = std::move(queue_.front());
    queue_.pop_front();
    queued_ -= call->weight();
    lane->connection->Send(std::move(call));
  }
}

void Node::Renew() noexcept {
  for (Lane& lane : lanes_) lane.is_retiring = lane.is_retiring || IsUsable(lane);
  WakeBy(Time());
}

// --- Connecting ---

void Node::Connect(Lane& lane) {
  lane.is_retiring = false;
  lane.connect_by = Time() + options_.connect_timeout;
  const Connection::Options options{.timeout = options_.timeout,
                                    .is_sentinel = options_.is_sentinel};
  Connection::Owner& self = *this;
  lane.connection = std::make_unique<Connection>(loop_, site_, options, self);
}

void Node::RetryLater(Lane& lane) {
  const SteadyTime now = Time();
  const int doublings = std::min(lane.retries++, 5);
  lane.retry_at = now + jitter_.UpTo(std::min(kLongestBackOff, kFirstBackOff * (1 << doublings)));
  WakeBy(lane.retry_at);
}

std::optional<Obstacle> Node::Inspect(Connection& connection) {
  if (options_.is_sentinel) return std::nullopt;
  const ServerFacts facts = ReadServerFacts(connection.info());
  if (facts.time) connection.NoteServerTime(*facts.time);
  is_to_be_tried_ = registry_.TakeCheck(name(), facts.run);
  if (is_to_be_tried_) {
    for (const ServerNotice& notice : CheckServer(facts)) registry_.Tell(name(), notice.text);
  }
  if (!IsTooOld(facts)) return std::nullopt;
  return Obstacle{StoreFault::kOther,
                  {ErrorCode::kOverloaded, name() + ": Redis " + facts.version + " is too old"}};
}

void Node::OnReady(Connection& connection) noexcept {
  Lane& lane = LaneOf(connection);
  if (std::optional<Obstacle> obstacle = Inspect(connection)) {
    return OnOver(connection, obstacle->fault, std::move(obstacle->error));
  }
  lane.failures = 0;
  lane.made_at = Time();
  ShowCounts();
  // A server that was not seen before shows with a call which rights are missing.
  const bool tries = std::exchange(is_to_be_tried_, false) && options_.make_probe;
  if (is_probing_ || tries) SendProbe();
  if (!is_probing_) SendQueued();
  watcher_.OnReady(*this);
}

void Node::OnOver(Connection& connection, StoreFault fault, Error error) noexcept {
  Lane& lane = LaneOf(connection);
  const bool was_made = connection.is_ready() && fault != StoreFault::kOther;
  error.message = name() + ": " + error.message;
  if (!was_made) {
    ++lane.failures;
    if (fault == StoreFault::kCredentials) {
      registry_.Tell(name(), "the server does not let us in: " + error.message);
    }
  }
  // A server that lets in and then talks nonsense is no better than one that does not.
  const auto lost = static_cast<std::uint32_t>(connection.in_flight());
  record_->breaker().Note(was_made ? Breaker::Outcome::kFailed : Breaker::Outcome::kRefused,
                          Duration(0), Time(), std::max(lost, 1U));
  CloseLane(lane, fault, error);
  if (is_probing_) EndProbe(false);
  if (!was_made && !HasHope()) FailQueued(fault, error);
  watcher_.OnTrouble(*this);
}

void Node::CloseLane(Lane& lane, StoreFault fault, const Error& error) {
  // Whether they took effect, nobody knows.
  const Error unknown{ErrorCode::kDeadline, error.message};
  for (auto& call : lane.connection->Close()) FailCall(std::move(call), fault, unknown);
  lane.is_retiring = false;
  last_ = {fault, error};
  RetryLater(lane);
  ShowCounts();
}

// --- Replies ---

void Node::OnAnswered(Connection& connection, std::unique_ptr<Call> call, Duration took) noexcept {
  // An answer alone does not show that all is well: one that may only be read answers who is
  // denied, and sends all others away. It would be connected to again and again without a pause.
  Lane& lane = LaneOf(connection);
  if (lane.retries > 0 && Time() - lane.made_at >= kLongestBackOff) lane.retries = 0;
  const bool is_slow = took > options_.timeout / 2;
  seen_.times.Record(took, call->weight());
  if (call->is_probe) {
    if (is_probing_) EndProbe(!is_slow);
  } else {
    ++(is_slow ? slow_answers_ : fast_answers_);
  }
  Call* const answered = call.get();
  answered->Ended(std::move(call), *this, {.kind = CallEnd::Kind::kAnswered});
}

void Node::OnErrorReply(Connection& connection, std::unique_ptr<Call> call, std::uint64_t number,
                        std::string_view text, Duration) noexcept {
  CallEnd end{.kind = CallEnd::Kind::kErrorReply, .reply = ReadErrorReply(text), .text = text};
  end.fault = end.reply.fault;
  if (end.reply.remedy == Remedy::kSendText && call->rounds < kMostRounds) {
    // Of many under way at once only the first brings the text; by the time the others come again,
    // the server knows it.
    call->with_text = number >= connection.last_text();
    return connection.Send(std::move(call));
  }
  end.error = {ErrorCode::kOverloaded, name() + ": " + std::string(Readable(text))};
  if (end.fault == StoreFault::kCredentials) {
    // Of what a script may not do the server does not say what it was.
    registry_.Tell(name(), "missing rights: " + std::string(Readable(text)) + "; enough would be " +
                               std::string(kLeastRights));
  }
  const bool elsewhere = end.reply.remedy == Remedy::kGoThere ||
                         end.reply.remedy == Remedy::kAskThere ||
                         end.reply.remedy == Remedy::kTryAgain;
  // While the breaker is open nobody else hears, and so can count, why the server is not well.
  if (call->is_probe && !elsewhere) CountFault(end.fault, 1);
  if (call->is_probe && is_probing_) EndProbe(elsewhere);
  // What we do not know the meaning of says nothing about the server's health.
  if (!elsewhere && end.fault != StoreFault::kOther) {
    record_->breaker().Note(Breaker::Outcome::kFailed, Duration(0), Time());
  }
  Call* const failed = call.get();
  failed->Ended(std::move(call), *this, std::move(end));
}

void Node::OnCaughtUp(Connection& connection) noexcept {
  NoteAnswers();
  if (LaneOf(connection).is_retiring && connection.in_flight() == 0) WakeBy(Time());
  SendQueued();
  ShowCounts();
}

void Node::NoteAnswers() {
  const SteadyTime now = Time();
  const std::uint32_t fast = std::exchange(fast_answers_, 0);
  const std::uint32_t slow = std::exchange(slow_answers_, 0);
  Breaker& breaker = record_->breaker();
  if (fast > 0) breaker.Note(Breaker::Outcome::kAnswered, Duration(0), now, fast);
  if (slow > 0) breaker.Note(Breaker::Outcome::kAnswered, options_.timeout, now, slow);
}

// --- Probes ---

void Node::SendProbe() {
  std::unique_ptr<Call> probe = options_.make_probe ? options_.make_probe() : nullptr;
  Lane* const lane = LaneWithRoom(1);
  if (probe == nullptr || lane == nullptr) {
    if (is_probing_) EndProbe(lane != nullptr);
    return;
  }
  probe->is_probe = true;
  probe->deadline = Time() + options_.timeout;
  WakeBy(probe->deadline);
  lane->connection->Send(std::move(probe));
}

void Node::EndProbe(bool succeeded) {
  is_probing_ = false;
  record_->breaker().NoteProbe(succeeded, Time());
  if (!is_ending_) WakeBy(Time());
}

// --- Time ---

void Node::Tick() {
  wake_at_.reset();
  const SteadyTime now = Time();
  Expire(now);
  Breaker& breaker = record_->breaker();
  if (!is_probing_ && !breaker.IsClosed() && breaker.TakeProbe(now)) {
    is_probing_ = true;  // If there is no connection, by making one.
    if (is_ready()) SendProbe();
  }
  for (Lane& lane : lanes_) TickLane(lane, now);
  SendQueued();
  ShowCounts();
  WakeForNext();
}

void Node::TickLane(Lane& lane, SteadyTime now) {
  if (!IsLive(lane)) {
    const bool is_probe = is_probing_ && &lane == &lanes_.front();
    const bool is_due = record_->breaker().IsClosed() && lane.retry_at <= now;
    if (is_probe || is_due) Connect(lane);
    return;
  }
  if (!lane.connection->is_ready()) {
    if (lane.connect_by <= now) {
      OnOver(*lane.connection, StoreFault::kRefused,
             {ErrorCode::kOverloaded, "no connection in time"});
    }
    return;
  }
  const std::optional<SteadyTime> oldest = lane.connection->OldestSent();
  if (oldest && *oldest + 2 * options_.timeout <= now) {
    // Nothing has come for so long that what comes, if anything, is of no use to anybody.
    return OnOver(*lane.connection, StoreFault::kLost,
                  {ErrorCode::kDeadline, "no answer for too long"});
  }
  if (lane.is_retiring && !oldest) {
    CloseLane(lane, StoreFault::kReadOnly, {ErrorCode::kOverloaded, name() + ": renewed"});
  }
}

void Node::Expire(SteadyTime now) {
  std::vector<std::unique_ptr<Call>> expired;
  for (Lane& lane : lanes_) {
    if (IsLive(lane)) lane.connection->TakeExpired(now, expired);
  }
  std::erase_if(queue_, [&](std::unique_ptr<Call>& call) {
    if (call->deadline > now) return false;
    queued_ -= call->weight();
    expired.push_back(std::move(call));
    return true;
  });
  for (auto& call : expired) {
    if (call->is_probe) {
      CountFault(StoreFault::kTimeout, 1);
      if (is_probing_) EndProbe(false);
    } else if (!call->is_hurried) {
      record_->breaker().Note(Breaker::Outcome::kTimedOut, options_.timeout, now);
    }
    FailCall(std::move(call), StoreFault::kTimeout,
             {ErrorCode::kDeadline, name() + ": no answer in time"});
  }
}

void Node::WakeBy(SteadyTime when) {
  if (is_ending_ || (wake_at_ && *wake_at_ <= when)) return;
  wake_at_ = when;
  timer_->Start(std::max(Duration(0), when - Time()));
}

void Node::WakeForNext() {
  const SteadyTime now = Time();
  Breaker& breaker = record_->breaker();
  if (!breaker.IsClosed() && !is_probing_) WakeBy(now + breaker.UntilProbe(now));
  for (const auto& call : queue_) WakeBy(call->deadline);
  for (const Lane& lane : lanes_) {
    if (!IsLive(lane)) {
      if (breaker.IsClosed()) WakeBy(lane.retry_at);
    } else if (!lane.connection->is_ready()) {
      WakeBy(lane.connect_by);
    } else {
      if (const auto deadline = lane.connection->NextDeadline()) WakeBy(*deadline);
      const auto oldest = lane.connection->OldestSent();
      if (oldest) WakeBy(*oldest + 2 * options_.timeout);
    }
  }
}

// --- Failing ---

void Node::FailQueued(StoreFault fault, const Error& error) {
  std::deque<std::unique_ptr<Call>> failed = std::exchange(queue_, {});
  queued_ = 0;
  for (auto& call : failed) FailCall(std::move(call), fault, error);
}

void Node::FailCall(std::unique_ptr<Call> call, StoreFault fault, const Error& error) {
  CallEnd end;
  end.kind = CallEnd::Kind::kFailed;
  end.fault = fault;
  end.error = error;
  Call* const failed = call.get();
  failed->Ended(std::move(call), *this, std::move(end));
}

void Node::ShowCounts() noexcept {
  std::uint64_t connections = 0;
  std::uint64_t in_flight = 0;
  for (const Lane& lane : lanes_) {
    if (!IsLive(lane)) continue;
    if (lane.connection->is_ready()) ++connections;
    in_flight += lane.connection->load();
  }
  seen_.connections.store(connections, std::memory_order_relaxed);
  seen_.in_flight.store(in_flight, std::memory_order_relaxed);
}

}  // namespace weir::redis
