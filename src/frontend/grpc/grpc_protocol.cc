#include "frontend/grpc/grpc_protocol.h"

#include <algorithm>
#include <array>
#include <span>

#include "frontend/ask_at_once.h"
#include "frontend/grpc/grpc_server.h"
#include "frontend/grpc/health.h"
#include "frontend/grpc/reflection.h"
#include "frontend/grpc/workbench.h"
#include "frontend/named_rules.h"

namespace weir {
namespace {

// What one part of a call takes on its way through a shared store, about.
constexpr std::size_t kPartBytes = 6'000;

Question::Kind KindOf(GrpcMethodKind method) noexcept {
  switch (method) {
    case GrpcMethodKind::kLimit:
      return Question::Kind::kLimit;
    case GrpcMethodKind::kPeek:
      return Question::Kind::kPeek;
    case GrpcMethodKind::kReserve:
      return Question::Kind::kReserve;
    case GrpcMethodKind::kCommit:
      return Question::Kind::kCommit;
    case GrpcMethodKind::kCancel:
    case GrpcMethodKind::kRelease:
      return Question::Kind::kCancel;
    case GrpcMethodKind::kRefund:
      return Question::Kind::kRefund;
    case GrpcMethodKind::kPenalize:
      return Question::Kind::kPenalize;
    case GrpcMethodKind::kReset:
      return Question::Kind::kReset;
    default:
      return Question::Kind::kCheck;
  }
}

// What speaks for a request among what its rules say, with its window.
RuleDecision SpeakerOf(const Decision& decision, std::span<const RuleDecision> each) noexcept {
  for (const RuleDecision& rule : each) {
    if (!rule.shadow && rule.decision.rule == decision.rule) {
      return {.decision = decision, .window = rule.window};
    }
  }
  return {.decision = decision};
}

class GrpcProtocol final : public Protocol, private GrpcServices {
 public:
  explicit GrpcProtocol(Exchange& exchange)
      : exchange_(exchange), door_(exchange.door()), server_(exchange, *this) {}
  GrpcProtocol(const GrpcProtocol&) = delete;
  GrpcProtocol& operator=(const GrpcProtocol&) = delete;
  ~GrpcProtocol() override {
    server_.ForEachCall([&](const GrpcCall& call) { GiveBackPlaces(call); });
  }

  Progress OnInput(std::span<char> input) noexcept override {
    decided_ = 0;
    server_.Feed({input.data(), input.size()});
    TakeReady();
    if (!server_.ready().empty()) TakeThoseThatAskNothing();
    server_.Flush();
    return {.used = input.size(), .decided = decided_};
  }

  void OnAnswered(const ReplyPlace& place, const Told& told) noexcept override {
    if ((place.tag & kAsked) != 0) --asked_;
    if ((place.tag & kJoint) != 0) asked_parts_ -= ItemOf(place.tag);
    Tell(place, told);
    if (taking_up_) return;
    TakeReady();
    server_.Flush();
  }

  void Tell(const ReplyPlace& place, const Told& told) noexcept {
    GrpcCall* const call = server_.Find(StreamOf(place.tag));
    if (call == nullptr || !call->is_pending) {
      // Nobody is there any more who would settle it.
      return door_.desk.CancelForNobody(told.answer.decision.reservation);
    }
    if (call->missing > 0) {
      call->decisions[ItemOf(place.tag)] = told.answer.decision;
      if (--call->missing > 0) return;
    }
    server_.Awaited(*call);
    Answer(*call, told);
  }

  void OnTimeout() noexcept override {}

  void OnSweep(SteadyTime now) noexcept override {
    server_.ForEachCall([&](GrpcCall& call) {
      if (call.watched >= 0 && !call.is_finished) TellHealth(call);
    });
    server_.Sweep(now);
    server_.Flush();
  }

  void OnEnding() noexcept override { server_.SayGoodbye(); }

  bool IsListenedTo() noexcept override {
    bool is_watched = false;
    server_.ForEachCall(
        [&](const GrpcCall& call) { is_watched |= call.watched >= 0 && !call.is_finished; });
    return is_watched;
  }

  bool IsAmid() const noexcept override { return server_.has_calls(); }
  std::size_t held_bytes() const noexcept override {
    return server_.held_bytes() + asked_parts_ * kPartBytes;
  }

 private:
  using More = GrpcServer::More;

  // What goes with a question: the stream, which item of a batch it is or how many parts it has,
  // and what is counted for it until it is answered, also if nobody waits for that any more.
  static constexpr std::uint64_t kAsked = std::uint64_t{1} << 63U;
  static constexpr std::uint64_t kJoint = std::uint64_t{1} << 62U;
  static ReplyPlace PlaceOf(const GrpcCall& call, std::uint64_t item = 0) noexcept {
    const auto id = static_cast<std::uint64_t>(call.id);
    return {.ticket = Replies::Ticket{id}, .tag = id | (item << 32U)};
  }
  static std::uint64_t StreamOf(std::uint64_t tag) noexcept { return tag & 0xffff'ffffU; }
  static std::size_t ItemOf(std::uint64_t tag) noexcept {
    return (tag & ~(kAsked | kJoint)) >> 32U;
  }

  // Takes up calls that are complete, as long as not too much is under way: the others wait.
  void TakeReady() {
    std::vector<GrpcCall*>& ready = server_.ready();
    if (ready.empty() || IsBusy(ready.front()->asks)) return;
    GrpcWorkbench& bench = GrpcWorkbench::Mine();
    std::size_t pending = 0;
    std::size_t taken = 0;
    taking_up_ = true;
    while (taken < ready.size() && !IsBusy(ready[taken]->asks)) {
      if (!Take(bench, *ready[taken], pending)) break;
      server_.TakeUp(*ready[taken++]);
    }
    taking_up_ = false;
    ready.erase(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(taken));
    Decide(bench, pending);
    for (GrpcCall* const call : ready) server_.PutOff(*call);
  }
  // The store has a bound on what may be under way for all connections of this thread. One that
  // asks for more than that by itself has it for itself.
  bool IsBusy(std::size_t more = 1) const noexcept {
    const auto most = static_cast<std::size_t>(door_.desk.settings->limits.pipeline);
    return asked_ > 0 && asked_ + std::max<std::size_t>(more, 1) > most;
  }
  // A slow store is no reason to seem dead.
  void TakeThoseThatAskNothing() {
    std::erase_if(server_.ready(), [&](GrpcCall* call) {
      const GrpcMethodKind kind = call->method->kind;
      if (kind != GrpcMethodKind::kHealthCheck && kind != GrpcMethodKind::kHealthWatch)
        return false;
      server_.TakeUp(*call);
      TakeHealth(*call);
      return true;
    });
  }

  void Fail(GrpcCall& call, const Error& error) { server_.End(call, StatusOf(error)); }

  // Answers a call, or puts it with those that are decided together. False if it asks for more than
  // there is room for now.
  bool Take(GrpcWorkbench& bench, GrpcCall& call, std::size_t& pending) {
    switch (call.method->kind) {
      case GrpcMethodKind::kShouldRateLimit:
      case GrpcMethodKind::kCheck: {
        PendingCall& next = bench.pending(pending);
        next.call = &call;
        if (!Gather(next, bench.batch[pending])) return true;
        if (++pending == GrpcWorkbench::kMostPending) Decide(bench, std::exchange(pending, 0));
        return true;
      }
      case GrpcMethodKind::kHealthCheck:
      case GrpcMethodKind::kHealthWatch:
        TakeHealth(call);
        return true;
      case GrpcMethodKind::kCheckBatch:
        Decide(bench, std::exchange(pending, 0));
        return TakeBatch(bench, call);
      default:
        Decide(bench, std::exchange(pending, 0));
        TakeQuestion(bench, call);
        return true;
    }
  }

  // True if it can be decided with others; else it was answered, or will be.
  bool Gather(PendingCall& pending, BatchRequest& item) {
    GrpcCall& call = *pending.call;
    const bool is_rls = call.method->kind == GrpcMethodKind::kShouldRateLimit;
    if (is_rls ? !ReadRls(pending) : !ReadMessage(pending)) return false;
    item = is_rls ? BatchRequest{.request = pending.rls.only().request,
                                 .cost = pending.rls.only().cost,
                                 .each = pending.each,
                                 .at_once = true}
                  : BatchRequest{.request = pending.message.request,
                                 .cost = pending.message.cost,
                                 .each = pending.each};
    if (!is_rls && pending.message.wait > Duration(0)) {
      Wait(call, item.request, item.cost, pending.message.wait);
      return false;
    }
    if (is_rls && MayHold(item.request)) {
      Hold(call, item.request, item.cost);
      return false;
    }
    if (!door_.desk.asks_later()) return true;
    AskLater(call, {.request = item.request, .cost = item.cost, .at_once = item.at_once});
    return false;
  }

  bool ReadMessage(PendingCall& pending) {
    GrpcCall& call = *pending.call;
    auto error =
        ReadLimiterMessage(GrpcServer::MessageOf(call), call.method->kind, pending.message);
    if (!error) error = FindUnknownRule(door_.desk.engine, pending.message.request);
    if (error) Fail(call, *error);
    return !error;
  }

  // The same for one of Envoy's. True if it is a plain one.
  bool ReadRls(PendingCall& pending) {
    GrpcCall& call = *pending.call;
    if (const auto error = pending.rls.Read(GrpcServer::MessageOf(call), door_.desk.limits)) {
      Fail(call, *error);
      return false;
    }
    if (!pending.rls.refunds().empty() && !MayManage(call)) return false;
    if (pending.rls.is_plain()) return true;
    TakeTogether(pending);
    return false;
  }

  bool MayManage(GrpcCall& call) {
    if (std::max(door_.access.WithoutToken(), door_.access.WithToken(call.token)) >=
        Right::kManage) {
      return true;
    }
    server_.End(call, {.code = GrpcCode::kPermissionDenied,
                       .message = "is_negative_hits: this needs the right to manage"});
    return false;
  }

  // --- Envoy's, with several descriptors. ---

  void TakeTogether(PendingCall& pending) {
    GrpcCall& call = *pending.call;
    const RlsParts& parts = pending.rls;
    call.is_joint = true;
    call.has_refunds = !parts.refunds().empty();
    if (door_.desk.asks_later()) {
      const bool asks = !parts.checks().empty();
      if (!asks) call.has_refunds = false;
      call.answer = {.decision = {.allowed = true}};
      call.statuses.clear();
      const auto asked = asks ? parts.checks() : parts.refunds();
      return AskLater(
          call, {.kind = asks ? Question::Kind::kCheckTogether : Question::Kind::kRefundTogether,
                 .parts = asked});
    }
    const Now now = door_.desk.loop.now();
    std::array<RuleDecision, Engine::kMostParts> checked;
    std::array<RuleDecision, Engine::kMostParts> refunded;
    weir::Answer answer{.decision = {.allowed = true}};
    if (!parts.checks().empty()) {
      answer = door_.desk.engine.CheckTogether(parts.checks(), now, checked);
      ++decided_;
    }
    std::size_t refunds = 0;
    if (answer.decision.allowed && call.has_refunds) {
      const auto given = door_.desk.engine.RefundTogether(parts.refunds(), now, refunded);
      if (parts.checks().empty()) answer = given;
      refunds = parts.refunds().size();
    }
    answer.decision.allowed |= parts.checks().empty();
    AnswerTogether(call, parts, answer, std::span(checked).first(parts.checks().size()),
                   std::span(refunded).first(refunds));
  }

  void AnswerTogether(GrpcCall& call, const RlsParts& parts, const weir::Answer& answer,
                      std::span<const RuleDecision> checked,
                      std::span<const RuleDecision> refunded) {
    std::vector<RuleDecision>& statuses = GrpcWorkbench::Mine().statuses;
    parts.Merge(checked, refunded, statuses);
    WriteRls(call, {.answer = answer, .statuses = statuses, .now = door_.desk.loop.now()});
  }

  // The first answer may lead to another question.
  void AnswerLateTogether(GrpcCall& call, const Told& told) {
    RlsParts& parts = GrpcWorkbench::Mine().other.rls;
    if (parts.Read(GrpcServer::MessageOf(call), door_.desk.limits)) {
      return server_.End(call, {.code = GrpcCode::kInternal});  // It was read before.
    }
    if (call.has_refunds && told.answer.decision.allowed) {
      call.has_refunds = false;
      call.answer = told.answer;
      call.statuses.assign(told.each.begin(), told.each.end());
      return AskLater(call, {.kind = Question::Kind::kRefundTogether, .parts = parts.refunds()});
    }
    const bool was_refund = parts.checks().empty() || !call.statuses.empty();
    if (!was_refund) return AnswerTogether(call, parts, told.answer, told.each, {});
    weir::Answer answer = parts.checks().empty() ? told.answer : call.answer;
    answer.decision.allowed = true;
    AnswerTogether(call, parts, answer, call.statuses, told.each);
  }

  void WriteRls(GrpcCall& call, const RlsReply& reply) {
    GrpcFrame frame(call.out);
    GrpcWorkbench::Mine().rls_writer.Write(call.out, reply, *door_.desk.settings);
    frame.Finish();
    server_.Send(call, More::kNo);
  }

  // --- Those that are decided together. ---

  void Decide(GrpcWorkbench& bench, std::size_t pending) {
    if (pending == 0) return;
    const Now now = door_.desk.loop.now();
    const std::span<BatchRequest> batch = std::span(bench.batch).first(pending);
    door_.desk.engine.CheckBatch(batch, now);
    decided_ += static_cast<std::uint32_t>(pending);
    for (std::size_t i = 0; i < pending; ++i) {
      const weir::Answer& answer = batch[i].answer;
      const std::size_t told = std::min(answer.rules, batch[i].each.size());
      AnswerCheck(*bench.pending(i).call, answer, batch[i].each.first(told));
    }
  }

  void AnswerCheck(GrpcCall& call, const weir::Answer& answer, std::span<const RuleDecision> each) {
    if (call.method->kind == GrpcMethodKind::kShouldRateLimit) {
      const RuleDecision status = SpeakerOf(answer.decision, each);
      return WriteRls(call, {.answer = answer,
                             .statuses = {&status, 1},
                             .rules = each,
                             .now = door_.desk.loop.now()});
    }
    AnswerDecision(call, answer);
  }

  void AnswerDecision(GrpcCall& call, const weir::Answer& answer) {
    GrpcFrame frame(call.out);
    WriteDecision(call.out, {.decision = answer.decision,
                             .message = answer.message,
                             .now = door_.desk.loop.now().wall});
    frame.Finish();
    server_.Send(call, More::kNo);
  }

  // --- Those that are decided by themselves. ---

  void TakeQuestion(GrpcWorkbench& bench, GrpcCall& call) {
    PendingCall& pending = bench.other;
    pending.call = &call;
    if (!ReadMessage(pending)) return;
    const LimiterMessage& message = pending.message;
    Question question{.kind = KindOf(call.method->kind),
                      .request = message.request,
                      .cost = message.cost,
                      .ttl = message.ttl,
                      .reservation = message.reservation,
                      .keeps_cost = !message.has_cost,
                      .key = message.key};
    if (question.kind == Question::Kind::kLimit) {
      const Result<const Limit*> limit = door_.desk.limits.Find(message.limit, message.algorithm);
      if (!limit) return Fail(call, limit.error());
      question.limit = *limit;
    }
    if (door_.desk.asks_later()) return AskLater(call, question);
    const Result<weir::Answer> answer =
        AskAtOnce(door_.desk.engine, question, door_.desk.loop.now());
    if (!answer) return Fail(call, answer.error());
    ++decided_;
    AnswerDecision(call, *answer);
  }

  // False if there is no room for it now.
  bool TakeBatch(GrpcWorkbench& bench, GrpcCall& call) {
    std::vector<std::string_view>& texts = bench.batch_texts;
    if (const auto error = ReadBatchMessage(GrpcServer::MessageOf(call), texts)) {
      Fail(call, *error);
      return true;
    }
    call.asks = texts.size();
    if (IsBusy(call.asks)) return false;
    DecideBatch(call, texts);
    return true;
  }

  void DecideBatch(GrpcCall& call, std::span<const std::string_view> texts) {
    std::vector<LimiterMessage> messages(texts.size());
    std::vector<BatchRequest> batch(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      auto error = ReadLimiterMessage(texts[i], GrpcMethodKind::kCheckBatch, messages[i]);
      if (!error) error = FindUnknownRule(door_.desk.engine, messages[i].request);
      if (error) {
        error->message = "requests[" + std::to_string(i) + "]." + error->message;
        return Fail(call, *error);
      }
      batch[i] = {.request = messages[i].request, .cost = messages[i].cost};
    }
    if (door_.desk.asks_later() && !batch.empty()) return AskBatch(call, batch);
    door_.desk.engine.CheckBatch(batch, door_.desk.loop.now());
    decided_ += static_cast<std::uint32_t>(batch.size());
    std::vector<Decision> decisions;
    decisions.reserve(batch.size());
    for (const BatchRequest& item : batch) decisions.push_back(item.answer.decision);
    AnswerBatch(call, decisions);
  }

  void AskBatch(GrpcCall& call, std::span<const BatchRequest> batch) {
    call.decisions.assign(batch.size(), {});
    call.missing = batch.size();
    server_.Await(call);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      AskCounted({.request = batch[i].request, .cost = batch[i].cost}, PlaceOf(call, i));
    }
  }

  void AnswerBatch(GrpcCall& call, std::span<const Decision> decisions) {
    GrpcFrame frame(call.out);
    for (const Decision& decision : decisions) {
      WriteBatchItem(call.out, {.decision = decision, .now = door_.desk.loop.now().wall});
    }
    frame.Finish();
    server_.Send(call, More::kNo);
  }

  // --- Later. ---

  void AskLater(GrpcCall& call, const Question& question) {
    server_.Await(call);
    const std::size_t parts = question.parts.size();
    ReplyPlace place = PlaceOf(call, parts);
    if (parts > 0) place.tag |= kJoint;
    asked_parts_ += parts;
    AskCounted(question, place);
  }
  void AskCounted(const Question& question, ReplyPlace place) {
    ++asked_;
    place.tag |= kAsked;
    exchange_.AskLater(question, place);
  }

  void Wait(GrpcCall& call, const Request& request, std::int64_t cost, Duration patience) {
    server_.Await(call);
    if (call.timeout) patience = std::min(patience, *call.timeout);
    exchange_.CheckWaiting(request, {.cost = cost, .now = door_.desk.loop.now()}, patience,
                           PlaceOf(call));
  }

  // Envoy cannot be told to wait: the policy may say that its answers are held instead.
  bool MayHold(const Request& request) const {
    const Settings& settings = *door_.desk.settings;
    return settings.queues && settings.queue_hold.value_or(Duration(0)) > Duration(0) &&
           door_.desk.engine.MayQueue(request);
  }
  void Hold(GrpcCall& call, const Request& request, std::int64_t cost) {
    server_.Await(call);
    const Duration hold = *door_.desk.settings->queue_hold;
    exchange_.CheckQueueing(request, {.cost = cost, .now = door_.desk.loop.now()},
                            std::min(hold, call.timeout.value_or(hold)), PlaceOf(call));
  }

  void Answer(GrpcCall& call, const Told& told) {
    if (told.error != nullptr) return Fail(call, *told.error);
    if (call.is_joint) return AnswerLateTogether(call, told);
    if (call.method->kind == GrpcMethodKind::kCheckBatch) return AnswerBatch(call, call.decisions);
    AnswerCheck(call, told.answer,
                told.each.first(std::min(told.each.size(), PendingCall::kMostRules)));
  }

  void OnAbandoned(GrpcCall& call) noexcept override {
    exchange_.CancelWaiting(PlaceOf(call));
    GiveBackPlaces(call);
  }
  // What a call was given that will not be answered: of a batch, what has come by now, and what was
  // let through before something else is given back. The rest finds nobody.
  void GiveBackPlaces(const GrpcCall& call) {
    if (!call.is_pending) return;
    for (const Decision& decision : call.decisions) {
      door_.desk.CancelForNobody(decision.reservation);
    }
    if (call.is_joint) door_.desk.CancelForNobody(call.answer.decision.reservation);
  }

  // --- Health and reflection. ---

  void TakeHealth(GrpcCall& call) {
    const auto service = ReadHealthRequest(GrpcServer::MessageOf(call));
    if (!service) {
      return server_.End(
          call, {.code = GrpcCode::kInvalidArgument, .message = "this is no HealthCheckRequest"});
    }
    if (call.method->kind == GrpcMethodKind::kHealthWatch) {
      call.path = *service;
      call.watched = 0;
      return TellHealth(call);
    }
    const ServingStatus status = HealthOf(*service, door_.desk.state);
    if (status == ServingStatus::kServiceUnknown) {
      return server_.End(call, {.code = GrpcCode::kNotFound,
                                .message = "there is no service '" + std::string(*service) + "'"});
    }
    WriteStatus(call, status, More::kNo);
  }

  void WriteStatus(GrpcCall& call, ServingStatus status, More more) {
    GrpcFrame frame(call.out);
    WriteHealth(call.out, status);
    frame.Finish();
    server_.Send(call, more);
  }

  // Whoever watches is told what has changed; when the service ends, that it does.
  void TellHealth(GrpcCall& call) {
    const ServingStatus status = HealthOf(call.path, door_.desk.state);
    if (call.watched != static_cast<std::int8_t>(status)) {
      call.watched = static_cast<std::int8_t>(status);
      WriteStatus(call, status, More::kYes);
    }
    if (!exchange_.draining()) return;
    server_.End(call, {.code = GrpcCode::kUnavailable, .message = "the service ends"});
  }

  void OnMessage(GrpcCall& call, std::string_view message) noexcept override {
    // Who asks and does not take the answers is not answered for ever.
    constexpr std::size_t kMostUnsent = std::size_t{1} << 20;
    if (call.out.size() > kMostUnsent) {
      return server_.End(call, {.code = GrpcCode::kResourceExhausted,
                                .message = "the answers are not being read"});
    }
    GrpcFrame frame(call.out);
    if (!AnswerReflection(message, call.out)) {
      frame.Drop();
      return server_.End(call, {.code = GrpcCode::kInvalidArgument,
                                .message = "this is no ServerReflectionRequest"});
    }
    frame.Finish();
    server_.Send(call, More::kYes);
  }

  Exchange& exchange_;
  Door& door_;
  std::uint32_t decided_ = 0;
  bool taking_up_ = false;  // What is answered meanwhile is sent with the rest.
  std::size_t asked_ = 0;   // Questions that the store has not answered, those of ended calls too.
  std::size_t asked_parts_ = 0;  // Of them.
  GrpcServer server_;
};

}  // namespace

std::unique_ptr<Protocol> MakeGrpcProtocol(Exchange& exchange) {
  return std::make_unique<GrpcProtocol>(exchange);
}

}  // namespace weir
