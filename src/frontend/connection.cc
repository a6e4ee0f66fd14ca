#include "frontend/connection.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

constexpr std::size_t kSmallestInput = 2048;
constexpr std::size_t kReadAhead = std::size_t{64} << 10;  // As far as bytes are read unasked.
constexpr std::size_t kLeastRead = 512;
// How much must be taken within the time for writing.
constexpr std::size_t kLeastProgress = std::size_t{64} << 10;
// After so long without a request, memory is given back.
constexpr Duration kKeepsBuffers = std::chrono::seconds(1);
constexpr std::size_t kMostIdleOutput = std::size_t{64} << 10;
constexpr std::uint8_t kQuietReads = 64;
// How long what comes in late is thrown away before the connection is closed.
constexpr Duration kLinger = std::chrono::seconds(1);
// A connection that is silent for so long while the service drains has nothing under way.
constexpr Duration kQuiet = std::chrono::milliseconds(100);

Replies::Bounds BoundsOf(const ServiceLimits& limits) noexcept {
  return {.bytes = static_cast<std::size_t>(limits.output),
          .held = static_cast<std::size_t>(limits.pipeline)};
}

bool MayReserve(Question::Kind kind) noexcept {
  return kind == Question::Kind::kCheck || kind == Question::Kind::kReserve ||
         kind == Question::Kind::kLimit;
}

}  // namespace

Connection::Connection(const Surroundings& around, std::uint64_t id, std::unique_ptr<Stream> stream,
                       MakeProtocol make_protocol)
    : around_(around),
      id_(id),
      stream_(std::move(stream)),
      replies_(BoundsOf(around.door.desk.settings->limits)),
      protocol_(make_protocol(*this)),
      last_read_(around.door.desk.loop.now().steady),
      request_began_(last_read_) {
  around_.door.metrics.connections.Add();
}

Connection::~Connection() {
  for (const Wait& wait : waits_) around_.door.desk.engine.CancelWait(wait.id);
  around_.gate.AddBuffered(-static_cast<std::ptrdiff_t>(accounted_));
  around_.gate.Leave(stream_->peer());
  around_.door.metrics.connections.Subtract(1);
}

void Connection::Start() {
  stream_->SetHandler(*this);
  input_.SetCapacity(kSmallestInput);
  ReadOn();
}

void Connection::OnRead(std::size_t count) noexcept {
  reading_ = false;
  if (count == 0) {
    // Whoever hangs up while waiting does not want the answer any more.
    if (lingering_ || IsWaiting()) return Gone();
    peer_done_ = true;
    return GoOn();
  }
  if (replies_.closing()) {
    input_.Clear();  // Too late.
    ReadOn();
    return;
  }
  const SteadyTime now = around_.door.desk.loop.now().steady;
  if (input_.empty()) request_began_ = now;
  last_read_ = now;
  input_.Wrote(count);
  filled_ = input_.free().empty();
  AdaptRoom(count);
  if (TakeUpInput()) GoOn();
}

void Connection::OnHangUp() noexcept {
  if (IsWaiting()) Gone();
}

void Connection::OnWritable() noexcept {
  awaiting_writable_ = false;
  GoOn();
}

void Connection::OnBroken() noexcept { Gone(); }

// Has the protocol answer what is there.
bool Connection::TakeUpInput() noexcept {
  Door& door = around_.door;
  // What was not read could not be completed.
  if (std::exchange(full_, false)) request_began_ = door.desk.loop.now().steady;
  while (!input_.empty() && !replies_.closing()) {
    const Protocol::Progress progress = protocol_->OnInput(input_.bytes());
    input_.Consume(progress.used);
    wants_ = progress.wants;
    if (progress.decided > 0) {
      const Duration took = door.desk.TimeSinceLast();
      door.metrics.decision_time.Record(took / progress.decided, progress.decided);
    }
    if (progress.used > 0) request_began_ = door.desk.loop.now().steady;
    if (!replies_.IsFull()) break;
    if (!Flush()) return false;
    if (!replies_.IsFull()) continue;
    full_ = true;
    door.metrics.Refused(replies_.ready().empty() ? Refusal::kPipeline : Refusal::kOutput);
    break;
  }
  return true;
}

// What comes next: sending, ending, reading.
void Connection::GoOn() noexcept {
  if (!Flush()) return;
  while (full_ && !replies_.IsFull()) {
    if (!TakeUpInput() || !Flush()) return;
  }
  const bool all_answered = replies_.held() == 0 && replies_.ready().empty();
  if (all_answered && (replies_.closing() || peer_done_)) return End();
  if (!full_ && !peer_done_ && !lingering_) ReadOn();
}

bool Connection::Flush() noexcept {
  ByteBuffer& ready = replies_.ready();
  if (ready.empty()) return true;
  const std::optional<std::size_t> sent = stream_->Write(ready.view());
  if (!sent) {
    Gone();
    return false;
  }
  ready.Consume(*sent);
  if (ready.empty()) {
    unsent_since_.reset();
    if (ready.capacity() > kMostIdleOutput) ready.SetCapacity(0);
  } else {
    // A peer that takes a byte now and then must not keep all the others for itself.
    sent_ += *sent;
    if (!unsent_since_ || sent_ >= kLeastProgress) {
      unsent_since_ = around_.door.desk.loop.now().steady;
      sent_ = 0;
    }
    if (!std::exchange(awaiting_writable_, true)) stream_->AwaitWritable();
  }
  if (AccountForBuffers()) return true;
  return Refuse(Refusal::kBuffers);
}

bool Connection::ReadOn() noexcept {
  if (std::exchange(reading_, true)) return true;
  MakeRoom();
  if (!AccountForBuffers()) return Refuse(Refusal::kBuffers);
  stream_->Read(input_.free());
  return true;
}

// Room for what is left of the request that has been begun, or for some more.
void Connection::MakeRoom() noexcept {
  input_.Compact();
  const std::size_t needed = wants_ > input_.size() ? wants_ : input_.size() + kLeastRead;
  if (input_.capacity() >= needed) return;
  // What is known to come is given room as it comes, not as it is announced.
  const std::size_t most_ahead = std::max(input_.size() * 2, kReadAhead);
  input_.SetCapacity(std::clamp(needed, std::min(input_.capacity() * 2, most_ahead), most_ahead));
}

// Clients that send much at a time are read in larger pieces, as long as they do.
void Connection::AdaptRoom(std::size_t count) noexcept {
  if (input_.free().empty() && input_.capacity() < kReadAhead && count * 2 >= input_.capacity()) {
    input_.SetCapacity(input_.capacity() * 2);
  }
  small_reads_ = count <= kSmallestInput / 2 ? static_cast<std::uint8_t>(small_reads_ + 1) : 0;
  if (small_reads_ < kQuietReads) return;
  small_reads_ = 0;
  if (input_.capacity() > kSmallestInput) {
    input_.SetCapacity(std::max(kSmallestInput, input_.size() + kLeastRead));
  }
  ByteBuffer& ready = replies_.ready();
  if (ready.empty() && ready.capacity() > kSmallestInput) ready.SetCapacity(0);
}

void Connection::GiveBackBuffers() noexcept {
  ByteBuffer& ready = replies_.ready();
  if (ready.empty() && ready.capacity() > 0) ready.SetCapacity(0);
  if (input_.empty() && input_.capacity() > kSmallestInput) {
    input_.SetCapacity(kSmallestInput);
    if (reading_) stream_->Read(input_.free());
  }
  std::ignore = AccountForBuffers();
}

bool Connection::IsWaiting() const noexcept {
  return std::ranges::any_of(waits_, [](const Wait& wait) { return wait.id != WaitId{0}; });
}

bool Connection::AccountForBuffers() noexcept {
  const std::size_t held = input_.capacity() + replies_.ready().capacity() + replies_.held_bytes() +
                           protocol_->held_bytes() + stream_->buffered();
  if (held == accounted_) return true;
  const auto more = static_cast<std::ptrdiff_t>(held) - static_cast<std::ptrdiff_t>(accounted_);
  accounted_ = held;
  // One that holds no more than every connection does is not the one to blame.
  return around_.gate.AddBuffered(more) || more < 0 || held <= kSmallestInput * 2;
}

bool Connection::Refuse(Refusal why) noexcept {
  around_.door.metrics.Refused(why);
  Gone();
  return false;
}

void Connection::End() noexcept {
  if (lingering_) return;
  if (peer_done_) return Gone();
  lingering_ = true;
  replies_.CloseWhenSent();
  last_read_ = around_.door.desk.loop.now().steady;
  stream_->FinishWriting();
  input_.Clear();
  ReadOn();
}

// With a farewell, if the protocol has one.
void Connection::EndQuietly() noexcept {
  protocol_->OnEnding();
  replies_.CloseWhenSent();
  GoOn();
}

void Connection::CheckDeadlines(SteadyTime now) noexcept {
  if (!lingering_ && !replies_.closing()) {
    const std::size_t before = replies_.ready().size();
    protocol_->OnSweep(now);
    if (replies_.ready().size() != before || replies_.closing()) return GoOn();
  }
  if (now - last_read_ > kKeepsBuffers) GiveBackBuffers();
  const ServiceLimits& limits = around_.door.desk.settings->limits;
  if (lingering_) {
    if (now - last_read_ > kLinger) Gone();
  } else if (unsent_since_) {
    if (now - *unsent_since_ > limits.write_timeout) Refuse(Refusal::kWriteTimeout);
  } else if (replies_.held() > 0) {
    // Whoever waits is not idle.
  } else if (!input_.empty()) {
    if (now - request_began_ <= limits.header_timeout) return;
    around_.door.metrics.Refused(Refusal::kHeaderTimeout);
    protocol_->OnTimeout();
    replies_.CloseWhenSent();
    GoOn();
  } else if (draining_) {
    // Whatever they want to ask comes after that.
    if (stream_->is_agreeing() || protocol_->IsAmid()) last_read_ = now;
    if (now - last_read_ > kQuiet) EndQuietly();
  } else if (now - last_read_ > limits.idle_timeout && !protocol_->IsListenedTo()) {
    around_.door.metrics.Refused(Refusal::kIdleTimeout);
    EndQuietly();
  }
}

void Connection::Drain(SteadyTime now) noexcept {
  draining_ = true;
  last_read_ = std::max(last_read_, now);
}

void Connection::EndDrain() noexcept {
  replies_.CloseWhenSent();
  EndWaits();
  GoOn();
}

void Connection::EndWaits() noexcept {
  const Answer answer{.decision = {.reason = Reason::kOverload}};
  // Who is answered may ask for something else.
  for (const Wait& wait : std::exchange(waits_, {})) {
    if (!around_.door.desk.engine.CancelWait(wait.id)) {
      waits_.push_back(wait);  // It is over, and its answer under way.
      continue;
    }
    around_.door.metrics.Refused(Refusal::kWaiters);
    protocol_->OnAnswered(wait.place, {.answer = answer});
  }
}

// Who calls back may find that this connection has ended.
void Connection::AskLater(const Question& question, const ReplyPlace& place) {
  Desk& desk = around_.door.desk;
  auto done = [&keeper = around_.keeper, &desk, id = id_, place, kind = question.kind,
               asked = desk.loop.now().steady](const Told& told) {
    if (Connection* const connection = keeper.Find(id)) {
      const Duration took = desk.loop.now().steady - asked;
      connection->around_.door.metrics.decision_time.Record(took, 1);
      return connection->Answered(place, told);
    }
    if (MayReserve(kind)) desk.CancelForNobody(told.answer.decision.reservation);
  };
  asking_ = true;
  desk.questions->Ask(question, std::move(done));
  asking_ = false;
}

// Whoever calls back may be on another thread, and this connection may have ended by then.
Engine::WaitDone Connection::WhenDone(const ReplyPlace& place) {
  return [mailbox = around_.keeper.mailbox(), &desk = around_.door.desk, &keeper = around_.keeper,
          id = id_, place](const Answer& answer, std::span<const RuleDecision> each) {
    mailbox->Post([&desk, &keeper, id, place, answer,
                   decisions = std::vector<RuleDecision>(each.begin(), each.end())] {
      if (Connection* const connection = keeper.Find(id)) {
        connection->Waited(place, {.answer = answer, .each = decisions});
      } else {
        desk.CancelForNobody(answer.decision.reservation);
      }
    });
  };
}

void Connection::CheckWaiting(const Request& request, const Ask& ask, Duration patience,
                              const ReplyPlace& place) {
  Engine& engine = around_.door.desk.engine;
  waits_.push_back(
      {.place = place, .id = engine.CheckThen(request, ask, patience, WhenDone(place))});
}

void Connection::CheckQueueing(const Request& request, const Ask& ask, Duration hold,
                               const ReplyPlace& place) {
  Engine& engine = around_.door.desk.engine;
  waits_.push_back({.place = place,
                    .id = engine.CheckThen(request, ask, hold, WhenDone(place), WaitFor::kQueues)});
}

void Connection::CancelWaiting(const ReplyPlace& place) {
  const auto wait = std::ranges::find_if(
      waits_, [&](const Wait& other) { return other.place.ticket == place.ticket; });
  if (wait == waits_.end()) return;
  // The answer of one that is over is under way.
  if (around_.door.desk.engine.CancelWait(wait->id)) waits_.erase(wait);
}

void Connection::Waited(const ReplyPlace& place, const Told& told) noexcept {
  std::erase_if(waits_, [&](const Wait& wait) { return wait.place.ticket == place.ticket; });
  if (told.answer.decision.reason == Reason::kOverload) {
    around_.door.metrics.Refused(Refusal::kWaiters);
  }
  Answered(place, told);
}

void Connection::Answered(const ReplyPlace& place, const Told& told) noexcept {
  protocol_->OnAnswered(place, told);
  last_read_ = around_.door.desk.loop.now().steady;  // It was not idle.
  if (asking_ || std::exchange(called_at_turn_end_, true)) return;
  around_.keeper.CallAtTurnEnd(id_);
}

void Connection::OnTurnEnd() noexcept {
  called_at_turn_end_ = false;
  GoOn();
}

}  // namespace weir
