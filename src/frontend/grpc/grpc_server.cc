#include "frontend/grpc/grpc_server.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "frontend/grpc/workbench.h"

namespace weir {
namespace {

// However many the policy would let wait on a connection.
constexpr std::int64_t kMostStreams = 250;
// What a call takes besides its messages, about.
constexpr std::size_t kCallBytes = sizeof(GrpcCall) + 512;

constexpr H2Field kHttpOk = {.name = ":status", .value = "200", .is_fixed = true};
constexpr H2Field kGrpcType = {
    .name = "content-type", .value = "application/grpc", .is_fixed = true};
constexpr std::array<H2Field, 2> kHead = {kHttpOk, kGrpcType};
constexpr std::array<H2Field, 1> kGoodEnd = {
    {{.name = "grpc-status", .value = "0", .is_fixed = true}}};

H2Session::Options OptionsOf(const ServiceLimits& limits) noexcept {
  return {.streams = static_cast<std::size_t>(std::min(limits.pipeline, kMostStreams)),
          .header_bytes = static_cast<std::size_t>(limits.header)};
}

// "application/grpc", perhaps with a suffix or parameters.
bool IsGrpcType(std::string_view type) noexcept {
  constexpr std::string_view kType = "application/grpc";
  if (!type.starts_with(kType)) return false;
  type.remove_prefix(kType.size());
  return type.empty() || type.starts_with("+proto") || type.starts_with(';') ||
         type.starts_with(' ');
}

// "100m": digits, and a unit. None if it is no such.
std::optional<Duration> ReadTimeout(std::string_view text) noexcept {
  constexpr std::size_t kMostDigits = 8;
  constexpr std::chrono::hours kLongest(24 * 366);  // Nanoseconds have no room for all hours.
  if (text.size() < 2 || text.size() > kMostDigits + 1) return std::nullopt;
  std::int64_t number = 0;
  const char* const unit = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), unit, number);
  if (error != std::errc() || end != unit || number < 0) return std::nullopt;
  switch (*unit) {
    case 'H':
      return std::min(std::chrono::hours(number), kLongest);
    case 'M':
      return std::min<std::chrono::minutes>(std::chrono::minutes(number), kLongest);
    case 'S':
      return std::chrono::seconds(number);
    case 'm':
      return std::chrono::milliseconds(number);
    case 'u':
      return std::chrono::microseconds(number);
    case 'n':
      return std::chrono::nanoseconds(number);
    default:
      return std::nullopt;
  }
}

// Longer messages are cut: clients refuse headers of some size, and so does nghttp2.
std::string_view Short(std::string_view message) noexcept {
  constexpr std::size_t kMost = 1'000;
  if (message.size() <= kMost) return message;
  std::size_t end = kMost;
  while ((static_cast<unsigned char>(message[end]) & 0xc0U) == 0x80U) --end;  // In no letter.
  return message.substr(0, end);
}

Refusal RefusalOf(H2Abuse abuse) noexcept {
  return static_cast<Refusal>(static_cast<std::uint8_t>(Refusal::kH2Resets) +
                              static_cast<std::uint8_t>(abuse));
}
static_assert(kRefusalNames.size() == static_cast<std::size_t>(Refusal::kH2Resets) + kH2Abuses);

}  // namespace

GrpcServer::GrpcServer(Exchange& exchange, GrpcServices& services)
    : exchange_(exchange),
      door_(exchange.door()),
      replies_(exchange.replies()),
      services_(services),
      session_(*this, OptionsOf(door_.desk.settings->limits), door_.desk.loop.now().steady) {}

GrpcServer::~GrpcServer() {
  for (auto& call : open_) GrpcWorkbench::Mine().ReturnCall(std::move(call));
}

void GrpcServer::Feed(std::string_view bytes) {
  const bool goes_on = session_.Feed(bytes, door_.desk.loop.now().steady);
  if (goes_on && !session_.has_output()) return;  // As mostly.
  // Only then is it known whether anything can still be answered.
  session_.TakeOutput(replies_.next());
  if (session_.abuse() || session_.is_broken()) ForgetReady();
  if (goes_on) return;
  if (session_.is_other_protocol()) {
    RefuseOtherProtocol();
  } else if (session_.abuse()) {
    door_.metrics.Refused(RefusalOf(*session_.abuse()));
  } else if (session_.is_broken()) {
    door_.metrics.Refused(Refusal::kProtocol);
  }
  replies_.CloseWhenSent();
}

void GrpcServer::Flush() {
  session_.TakeOutput(replies_.next());
  if (session_.is_broken()) DropPending();
  if (replies_.closing()) return;
  // Resets that the peer made us send.
  if (session_.abuse()) {
    door_.metrics.Refused(RefusalOf(*session_.abuse()));
    session_.EndWithError();
    session_.TakeOutput(replies_.next());
    DropPending();
    replies_.CloseWhenSent();
  } else if (session_.is_over()) {
    if (session_.is_broken()) door_.metrics.Refused(Refusal::kProtocol);
    replies_.CloseWhenSent();
  }
}

// Nothing more is sent, so nobody is waited for.
void GrpcServer::DropPending() {
  ForgetReady();
  for (const auto& call : open_) {
    if (!call->is_pending) continue;
    services_.OnAbandoned(*call);
    Awaited(*call);
    Count(GrpcCode::kCancelled);
  }
}

GrpcCall* GrpcServer::Find(std::uint64_t id) noexcept {
  H2Stream* const stream = session_.Find(static_cast<std::int32_t>(id));
  return stream == nullptr ? nullptr : &CallOf(*stream);
}

std::string_view GrpcServer::MessageOf(const GrpcCall& call) noexcept {
  return FirstMessage(call.in.view()).bytes;
}

void GrpcServer::RefuseOtherProtocol() {
  constexpr std::string_view kText = "this listener speaks gRPC, which is HTTP/2\n";
  replies_.next().Append(
      "HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain\r\n"
      "Connection: close\r\nContent-Length: ");
  replies_.next().Append(std::to_string(kText.size()));
  replies_.next().Append("\r\n\r\n");
  replies_.next().Append(kText);
  door_.metrics.Refused(Refusal::kProtocol);
}

// --- What comes in. ---

H2Stream* GrpcServer::OnRequest(std::int32_t id) noexcept {
  std::unique_ptr<GrpcCall> call = GrpcWorkbench::Mine().TakeCall();
  call->Begin(id, door_.desk.loop.now().steady);
  call->place = open_.size();
  return open_.emplace_back(std::move(call)).get();
}

bool GrpcServer::IsFull() const noexcept { return open_.size() >= session_.streams(); }

void GrpcServer::OnRefused() noexcept { door_.metrics.Refused(Refusal::kH2Streams); }

bool GrpcServer::OnHeader(H2Stream& stream, std::string_view name,
                          std::string_view value) noexcept {
  constexpr std::size_t kOverhead = 32;  // As RFC 9113 counts.
  GrpcCall& call = CallOf(stream);
  call.header_bytes += name.size() + value.size() + kOverhead;
  const auto most = static_cast<std::size_t>(door_.desk.settings->limits.header);
  if (call.header_bytes > most) {
    // Who is far beyond it is not answered: a short block can mean thousands of large fields.
    constexpr std::size_t kFar = 4;
    if (call.header_bytes <= kFar * most) return true;
    door_.metrics.Refused(Refusal::kHeader);
    return false;
  }
  if (name == ":path") {
    call.method = FindMethod(value);
    if (call.method == nullptr) call.path = value;
  } else if (name == ":method") {
    call.is_post = value == "POST";
  } else if (name == "content-type") {
    call.is_grpc = IsGrpcType(value);
  } else if (name == "authorization") {
    call.token = BearerToken(value);
  } else if (name == "grpc-timeout") {
    call.timeout = ReadTimeout(value);
  } else if (name == "grpc-encoding") {
    call.has_foreign_encoding = value != "identity";
  }
  return true;
}

void GrpcServer::OnHead(H2Stream& stream) noexcept {
  GrpcCall& call = CallOf(stream);
  const std::int64_t most = door_.desk.settings->limits.header;
  if (call.header_bytes > static_cast<std::size_t>(most)) {
    door_.metrics.Refused(Refusal::kHeader);
    return End(call, {.code = GrpcCode::kResourceExhausted,
                      .message = "the headers are larger than " + std::to_string(most) + " bytes"});
  }
  if (!call.is_post) return AnswerPlainly(call, "405", "this listener speaks gRPC: write POST\n");
  if (!call.is_grpc) {
    return AnswerPlainly(call, "415",
                         "this listener speaks gRPC: write content-type: application/grpc\n");
  }
  if (call.method == nullptr) {
    return End(call, {.code = GrpcCode::kUnimplemented,
                      .message = "there is no method " + call.path +
                                 "; reflection tells which there are"});
  }
  MayDo(call);
}

bool GrpcServer::MayDo(GrpcCall& call) {
  Right right = door_.access.WithoutToken();
  if (right >= call.method->right) return true;
  if (!call.token.empty()) right = std::max(right, door_.access.WithToken(call.token));
  if (right >= call.method->right) return true;
  const bool unknown = right == Right::kNone;
  if (unknown || !call.token.empty()) door_.metrics.Refused(Refusal::kToken);
  End(call, {.code = unknown ? GrpcCode::kUnauthenticated : GrpcCode::kPermissionDenied,
             .message = unknown ? "a token is needed: authorization: Bearer and the token"
                                : "this needs the right to manage"});
  return false;
}

void GrpcServer::OnData(H2Stream& stream, std::string_view bytes) noexcept {
  GrpcCall& call = CallOf(stream);
  if (call.is_finished) return;
  call.in.Append(bytes);
  in_bytes_ += bytes.size();
  if (RefuseMessage(call)) return;
  if (call.method->streams_in) TakeMessages(call);
}

// Ends the call if its next message, as far as it has come, is not to be read.
bool GrpcServer::RefuseMessage(GrpcCall& call) {
  const auto most = static_cast<std::size_t>(door_.desk.settings->limits.body);
  const GrpcMessage message = FirstMessage(call.in.view());
  // All calls of a connection may together be as large as one.
  if (message.size > most || in_bytes_ > most + kGrpcPrefix) {
    door_.metrics.Refused(Refusal::kBody);
    const bool by_itself = message.size > most;
    End(call, {.code = GrpcCode::kResourceExhausted,
               .message = (by_itself ? "a message may have at most "
                                     : "all that is not answered on a connection may have at "
                                       "most ") +
                          std::to_string(most) + " bytes"});
    return true;
  }
  if (message.state == GrpcMessage::State::kCompressed) {
    End(call, {.code = call.has_foreign_encoding ? GrpcCode::kUnimplemented : GrpcCode::kInternal,
               .message = "the message is compressed; only identity is understood here"});
    return true;
  }
  return false;
}

// Of a call that may have several: each as it comes.
void GrpcServer::TakeMessages(GrpcCall& call) {
  while (!call.is_finished && !RefuseMessage(call)) {
    const GrpcMessage message = FirstMessage(call.in.view());
    if (message.state != GrpcMessage::State::kComplete) return;
    services_.OnMessage(call, message.bytes);
    const std::size_t used = kGrpcPrefix + message.size;
    if (call.is_finished) return;
    call.in.Consume(used);
    in_bytes_ -= used;
    call.began = door_.desk.loop.now().steady;
  }
}

void GrpcServer::OnEnd(H2Stream& stream) noexcept {
  GrpcCall& call = CallOf(stream);
  if (call.is_finished) return;
  if (call.method->streams_in) {
    if (!call.in.empty()) {
      return End(call, {.code = GrpcCode::kInvalidArgument, .message = "a message was cut off"});
    }
    return End(call, {});
  }
  const GrpcMessage message = FirstMessage(call.in.view());
  if (message.state != GrpcMessage::State::kComplete) {
    return End(call,
               {.code = GrpcCode::kInvalidArgument,
                .message = call.in.empty() ? "there is no message" : "the message was cut off"});
  }
  if (call.in.size() != kGrpcPrefix + message.size) {
    return End(call,
               {.code = GrpcCode::kInvalidArgument, .message = "there is more than one message"});
  }
  call.is_ready = true;
  ready_.push_back(&call);
}

void GrpcServer::OnClosed(H2Stream& stream) noexcept {
  GrpcCall& call = CallOf(stream);
  if (call.is_ready) {
    std::erase(ready_, &call);
    TakeUp(call);
  }
  if (call.is_pending) {
    services_.OnAbandoned(call);
    Awaited(call);
    Count(GrpcCode::kCancelled);
  }
  Remove(call);
}

void GrpcServer::Remove(GrpcCall& call) noexcept {
  in_bytes_ -= std::min(in_bytes_, call.in.size());
  out_bytes_ -= std::min(out_bytes_, call.out_counted);
  const std::size_t place = call.place;
  std::swap(open_[place], open_.back());
  open_[place]->place = place;
  GrpcWorkbench::Mine().ReturnCall(std::move(open_.back()));
  open_.pop_back();
}

// --- Answers. ---

void GrpcServer::Count(GrpcCode code) noexcept {
  // Most are well.
  const std::size_t number = code == GrpcCode::kOk ? kReplyRespOk : ReplyCodeNumber(NameOf(code));
  door_.metrics.requests[number].Add();
}

void GrpcServer::Send(GrpcCall& call, More more) {
  out_bytes_ -= std::min(out_bytes_, call.out_counted);
  call.out_counted = call.out.capacity();
  out_bytes_ += call.out_counted;
  if (more == More::kNo) {
    call.is_finished = true;
    call.trailers = kGoodEnd;
    call.pays = true;
    Count(GrpcCode::kOk);
  }
  call.answered = door_.desk.loop.now().steady;
  if (call.is_answered) {
    session_.Resume(call);
  } else {
    session_.Answer(call, kHead);
  }
}

void GrpcServer::End(GrpcCall& call, const GrpcStatus& status) {
  call.answered = door_.desk.loop.now().steady;
  if (status.code == GrpcCode::kOk && call.is_answered) return Send(call, More::kNo);
  Count(status.code);
  // An error is an answer, too; but not to who sends more than may be.
  call.pays = status.code != GrpcCode::kResourceExhausted;
  call.status_message = PercentEncoded(Short(status.message));
  call.fields = {{{.name = "grpc-status", .value = NumberOf(status.code), .is_fixed = true},
                  {.name = "grpc-message", .value = call.status_message}}};
  const auto fields = std::span<const H2Field>(call.fields)
                          .first(call.status_message.empty() ? std::size_t{1} : std::size_t{2});
  if (call.is_answered) {
    call.is_finished = true;
    call.trailers = fields;
    session_.Resume(call);
  } else {
    std::array<H2Field, 5> all = {kHttpOk, kGrpcType};
    std::ranges::copy(fields, all.begin() + 2);
    std::size_t count = 2 + fields.size();
    if (status.code == GrpcCode::kUnimplemented && call.has_foreign_encoding) {
      all[count++] = {.name = "grpc-accept-encoding", .value = "identity", .is_fixed = true};
    }
    session_.AnswerWithoutBody(call, std::span(all).first(count));
  }
}

// For who does not speak gRPC.
void GrpcServer::AnswerPlainly(GrpcCall& call, std::string_view status, std::string_view text) {
  door_.metrics.requests[ReplyCodeNumber(status)].Add();
  door_.metrics.Refused(Refusal::kProtocol);
  call.out.Append(text);
  call.is_finished = true;
  call.answered = door_.desk.loop.now().steady;
  const std::array<H2Field, 3> fields = {
      {{.name = ":status", .value = status},
       {.name = "content-type", .value = "text/plain", .is_fixed = true},
       {.name = "allow", .value = "POST", .is_fixed = true}}};
  session_.Answer(call, std::span(fields).first(status == "405" ? 3 : 2));
}

void GrpcServer::PutOff(GrpcCall& call) {
  if (!std::exchange(call.is_put_off, true)) replies_.HoldAside();
}

void GrpcServer::TakeUp(GrpcCall& call) {
  call.is_ready = false;
  if (std::exchange(call.is_put_off, false)) replies_.FilledAside();
}

void GrpcServer::ForgetReady() {
  for (GrpcCall* const call : ready_) TakeUp(*call);
  ready_.clear();
}

void GrpcServer::Await(GrpcCall& call) {
  call.is_pending = true;
  replies_.HoldAside();
}

void GrpcServer::Awaited(GrpcCall& call) {
  if (!std::exchange(call.is_pending, false)) return;
  replies_.FilledAside();
}

// --- Time. ---

void GrpcServer::SweepCall(GrpcCall& call, SteadyTime now) {
  const ServiceLimits& limits = door_.desk.settings->limits;
  if (call.is_finished) {
    if (now - call.answered <= limits.write_timeout) return;
    door_.metrics.Refused(Refusal::kWriteTimeout);
    session_.Cancel(call);
    call.answered = now;  // Once.
  } else if (!call.has_ended) {
    const bool streams = call.method != nullptr && call.method->streams_in;
    if (now - call.began <= (streams ? limits.idle_timeout : limits.header_timeout)) return;
    door_.metrics.Refused(streams ? Refusal::kIdleTimeout : Refusal::kHeaderTimeout);
    if (call.method == nullptr) return session_.Cancel(call);
    End(call, {.code = GrpcCode::kDeadlineExceeded,
               .message = "the request did not come in time, or not whole"});
  }
}

void GrpcServer::Sweep(SteadyTime now) {
  const auto amid_since = session_.amid_since();
  if (amid_since && now - *amid_since > door_.desk.settings->limits.header_timeout) {
    door_.metrics.Refused(Refusal::kHeaderTimeout);
    session_.EndWithError();
    return replies_.CloseWhenSent();
  }
  for (const auto& call : open_) SweepCall(*call, now);
  if (!exchange_.draining()) return;
  // First that there will be an end, so that who is about to call can go elsewhere.
  if (farewell_ == 0) {
    session_.AnnounceEnd();
  } else if (farewell_ == 1) {
    session_.RefuseNewRequests();
  }
  farewell_ = std::min(farewell_ + 1, 2);
  // Who could ask for ever is not waited for.
  for (const auto& call : open_) {
    const bool asks_on = call->method != nullptr && call->method->streams_in;
    if (asks_on && !call->is_finished && call->in.empty()) End(*call, {});
  }
}

void GrpcServer::SayGoodbye() {
  session_.RefuseNewRequests();
  Flush();
}

std::size_t GrpcServer::held_bytes() const noexcept {
  return session_.bytes() + open_.size() * kCallBytes + in_bytes_ + out_bytes_;
}

}  // namespace weir
