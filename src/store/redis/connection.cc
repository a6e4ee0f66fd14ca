#include "store/redis/connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "net/resp/writer.h"
#include "net/tls.h"

namespace weir::redis {
namespace {

// Nothing a server has to say to us is larger: the slots of a large cluster are many small items.
constexpr resp::ReplyBounds kBounds{.depth = 6, .items = 524'288, .bytes = 262'144};
constexpr std::size_t kReadRoom = 16'384;
// Memory beyond this is given back when there is nothing to hold in it.
constexpr std::size_t kKeptBytes = 262'144;

}  // namespace

Connection::Connection(Loop& loop, const Site& site, const Options& options, Owner& owner)
    : loop_(loop),
      options_(options),
      owner_(owner),
      handshake_(site, options.is_sentinel),
      reader_(kBounds) {
  auto connected = [this](Result<void> result) { OnConnected(result); };
  stream_ = site.tls == nullptr ? loop_.Connect(site.endpoint, std::move(connected))
                                : ConnectTls(loop_, site.endpoint, site.tls, std::move(connected));
}

Connection::~Connection() { loop_.ForgetTurnEnd(*this); }

void Connection::OnConnected(const Result<void>& connected) {
  if (!connected) {
    Fail(StoreFault::kRefused, connected.error().message);
    return;
  }
  state_ = State::kHandshake;
  stream_->SetHandler(*this);
  stream_->SetUserTimeout(2 * options_.timeout);
  handshake_.Write(out_);
  loop_.AtTurnEnd(*this);
  ReadOn();
}

void Connection::ReadOn() {
  in_.Compact();
  in_.Room(kReadRoom);
  stream_->Read(in_.free());
}

void Connection::NoteServerTime(WallTime time) noexcept {
  server_clock_ = {.time = time, .at = loop_.now().steady};
}

WallTime Connection::ServerTime() noexcept {
  const Now now = loop_.now();
  return server_clock_ ? server_clock_->time + (now.steady - server_clock_->at) : now.wall;
}

void Connection::Send(std::unique_ptr<Call> call) {
  const SteadyTime now = loop_.now().steady;
  if (call->asking) {
    constexpr std::array<std::string_view, 1> kAsking = {"ASKING"};
    resp::WriteCommand(out_, kAsking);
    in_flight_.push_back({nullptr, now, sent_++});
  }
  call->wall = ServerTime();
  call->Write(out_);
  ++call->rounds;
  if (call->with_text) last_text_ = sent_;
  load_ += call->weight();
  in_flight_.push_back({std::move(call), now, sent_++});
  loop_.AtTurnEnd(*this);
}

void Connection::Flush() {
  if (is_blocked_ || stream_ == nullptr) return;
  while (!out_.empty()) {
    const std::optional<std::size_t> sent = stream_->Write(out_.view());
    if (!sent) return Lose("connection lost");
    if (*sent == 0) {
      is_blocked_ = true;
      return stream_->AwaitWritable();
    }
    out_.Consume(*sent);
  }
  if (out_.capacity() > kKeptBytes) out_.SetCapacity(0);
}

void Connection::OnWritable() noexcept {
  is_blocked_ = false;
  Flush();
}

void Connection::OnRead(std::size_t count) noexcept {
  if (count == 0) return Lose("closed by the server");
  in_.Wrote(count);
  if (!TakeItems()) return;
  if (in_.empty() && in_.capacity() > kKeptBytes) in_.SetCapacity(0);
  ReadOn();
  if (state_ == State::kReady) owner_.OnCaughtUp(*this);
}

bool Connection::TakeItems() {
  while (!in_.empty()) {
    const resp::ReplyReading reading = reader_.Read(in_.view());
    if (reading.kind == resp::ReplyReading::Kind::kIncomplete) return true;
    if (reading.kind == resp::ReplyReading::Kind::kMalformed) {
      return Fail(StoreFault::kProtocol, reading.error);
    }
    if (!TakeItem(reading.item)) return false;
    in_.Consume(reading.used);
  }
  return true;
}

bool Connection::TakeItem(const resp::ReplyItem& item) {
  if (state_ == State::kHandshake) {
    if (!handshake_.Take(item)) return Fail(StoreFault::kProtocol, "no answer to a greeting");
    return !handshake_.is_done() || EndHandshake();
  }
  if (in_flight_.empty()) return Fail(StoreFault::kProtocol, "an answer that nobody asked for");
  InFlight& front = in_flight_.front();
  const bool is_error = item.kind == resp::ReplyItem::Kind::kError && item.depth == 0;
  if (front.call != nullptr && !is_error && !front.call->Take(item)) {
    return Fail(StoreFault::kProtocol, "an answer that makes no sense");
  }
  if (!item.ends_reply) return true;
  std::unique_ptr<Call> call = TakeOut(front);
  const Duration took = loop_.now().steady - front.sent;
  const std::uint64_t number = front.number;
  in_flight_.pop_front();
  if (call == nullptr) return true;
  if (is_error) {
    owner_.OnErrorReply(*this, std::move(call), number, item.text, took);
  } else {
    if (const auto time = call->server_time()) NoteServerTime(*time);
    owner_.OnAnswered(*this, std::move(call), took);
  }
  return state_ == State::kReady;
}

bool Connection::EndHandshake() {
  if (const auto& refusal = handshake_.refusal()) return Fail(refusal->fault, refusal->text);
  state_ = State::kReady;
  owner_.OnReady(*this);
  return state_ == State::kReady;
}

void Connection::TakeExpired(SteadyTime now, std::vector<std::unique_ptr<Call>>& expired) {
  for (InFlight& one : in_flight_) {
    if (one.call != nullptr && one.call->deadline <= now) expired.push_back(TakeOut(one));
  }
}

std::unique_ptr<Call> Connection::TakeOut(InFlight& one) noexcept {
  if (one.call != nullptr) load_ -= one.call->weight();
  return std::move(one.call);
}

std::optional<SteadyTime> Connection::NextDeadline() const noexcept {
  std::optional<SteadyTime> next;
  for (const InFlight& one : in_flight_) {
    if (one.call != nullptr && (!next || one.call->deadline < *next)) next = one.call->deadline;
  }
  return next;
}

std::optional<SteadyTime> Connection::OldestSent() const noexcept {
  if (in_flight_.empty()) return std::nullopt;
  return in_flight_.front().sent;
}

std::vector<std::unique_ptr<Call>> Connection::Close() noexcept {
  std::vector<std::unique_ptr<Call>> left;
  for (InFlight& one : in_flight_) {
    if (one.call != nullptr) left.push_back(TakeOut(one));
  }
  in_flight_.clear();
  out_.Clear();
  stream_ = nullptr;
  state_ = State::kOver;
  return left;
}

bool Connection::Fail(StoreFault fault, std::string_view why) {
  owner_.OnOver(*this, fault, {ErrorCode::kOverloaded, std::string(why)});
  return false;
}

void Connection::Lose(std::string_view why) {
  Fail(state_ == State::kReady ? StoreFault::kLost : StoreFault::kRefused, why);
}

}  // namespace weir::redis
