#include "frontend/resp/resp_protocol.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/inline_vector.h"
#include "frontend/ask_at_once.h"
#include "frontend/decision_fields.h"
#include "frontend/resp/check_words.h"
#include "frontend/resp/command_list.h"
#include "frontend/resp/command_table.h"
#include "frontend/resp/decision_reply.h"
#include "frontend/resp/gathered.h"
#include "frontend/resp/late_reply.h"
#include "frontend/resp/reply.h"
#include "frontend/resp/session.h"
#include "frontend/resp/throttle.h"
#include "limit/limit_words.h"
#include "net/resp/command_reader.h"

namespace weir {
namespace {

using resp::CheckTerms;
using resp::CommandId;
using resp::CommandReading;
using resp::CommandRow;
using resp::Gathered;
using resp::HttpForm;
using resp::LateReply;
using resp::LimitShape;
using resp::Reply;
using resp::ThrottleStyle;
using resp::Version;

constexpr std::size_t kMostArguments = 1024;

// To copy where a request will be filled in. One made there would be filled with zeros by an
// instruction that takes long to begin.
const Request kUnfilled;

using Words = std::span<const std::string_view>;

std::string UnknownRule(std::string_view name) { return "unknown rule " + Quoted(name); }

// Browsers can be made to send these to any port, with commands in the body behind them.
bool IsHttp(std::string_view name) noexcept {
  return resp::EqualsUpperCase(name, "POST") || resp::EqualsUpperCase(name, "HOST:");
}

ThrottleStyle StyleOf(LimitShape::Kind kind) noexcept {
  return kind == LimitShape::Kind::kRedisCell ? ThrottleStyle::kRedisCell
                                              : ThrottleStyle::kThrottlecrab;
}

Question::Kind KindOf(CommandId id) noexcept {
  switch (id) {
    case CommandId::kWeirPeek:
      return Question::Kind::kPeek;
    case CommandId::kWeirReserve:
      return Question::Kind::kReserve;
    case CommandId::kWeirRefund:
      return Question::Kind::kRefund;
    case CommandId::kWeirPenalize:
      return Question::Kind::kPenalize;
    case CommandId::kWeirReset:
      return Question::Kind::kReset;
    case CommandId::kWeirCommit:
      return Question::Kind::kCommit;
    default:
      return Question::Kind::kCancel;
  }
}

// Of this thread: for one reply at a time.
ByteBuffer& Scratch() noexcept {
  thread_local ByteBuffer scratch;
  scratch.Clear();
  return scratch;
}

class RespProtocol final : public Protocol {
 public:
  explicit RespProtocol(Exchange& exchange)
      : exchange_(exchange), desk_(exchange.door().desk), session_(exchange) {}

  Progress OnInput(std::span<char> input) noexcept override;
  void OnAnswered(const ReplyPlace& place, const Told& told) noexcept override;
  void OnTimeout() noexcept override {
    NewReply().Fail("ERR", "Protocol error: the command was not completed");
  }

 private:
  // What a CL.THROTTLE or THROTTLE asked for. Those of a pipeline are mostly alike but for their
  // keys, so the last one is kept: comparing costs a fifth of reading.
  using WordSizes = std::array<std::size_t, 4>;  // Of the words behind the key.
  struct Throttle {
    std::string_view sent{};
    WordSizes sizes{};
    ThrottleStyle style{};
    const Limit* limit = nullptr;
    std::int64_t quantity = 1;
  };

  // One call of OnInput.
  struct Turn {
    // Not an aggregate: g++ would fill all of it with zeros first.
    explicit Turn(Now its_now) noexcept : now(its_now) {}

    Now now;
    Progress progress{};
    Throttle throttle{};
    Gathered gathered;
  };

  Reply NewReply() noexcept {
    return {exchange_.replies().next(), session_.version(), exchange_.door().metrics};
  }

  void TakeUp(Words words, Turn& turn);
  void Run(const CommandRow& row, Words words, Turn& turn);
  void TakeUpUnknown(Words words, Turn& turn);
  // For want of a right.
  void Refuse(const CommandRow& row, Turn& turn);
  void RefuseStranger();
  // Decides and answers what was gathered, or asks for it.
  void Decide(Turn& turn);
  void AskGathered(Gathered& gathered);
  void AskLater(const Question& question, const LateReply& late);

  void GatherThrottle(ThrottleStyle style, Words words, Turn& turn);
  Result<Throttle> ReadThrottle(ThrottleStyle style, Words words);
  void GatherLimit(Words words, Turn& turn);
  void AddLimit(const LimitRequest& request, const LimitShape& shape, Turn& turn);
  void Check(Words words, Turn& turn);
  // A check that waits, or whose reply says what HTTP does: by itself, behind what was gathered.
  void CheckAlone(Words words, const Request& request, const CheckTerms& terms, Turn& turn);
  // An answer that HTTP is told of.
  void WriteLate(ByteBuffer& out, const LateReply& late, const Told& told);
  // Peek, reserve and those who manage.
  void DecideOne(CommandId id, Words words, Turn& turn);
  void Settle(CommandId id, Words words, Turn& turn);
  void AnswerOne(const Question& question, Turn& turn);
  void Stop(const CommandReading& reading);

  // Decides what was gathered first, so that replies keep their order.
  void Fail(const Error& error, Turn& turn) {
    Decide(turn);
    NewReply().Fail(error);
  }
  void Fail(std::string_view text, Turn& turn) {
    Decide(turn);
    NewReply().Fail("ERR", text);
  }

  Exchange& exchange_;
  Desk& desk_;
  resp::Session session_;
  resp::CommandReader reader_;
};

Protocol::Progress RespProtocol::OnInput(std::span<char> input) noexcept {
  Turn turn(desk_.loop.now());
  Replies& replies = exchange_.replies();
  const resp::CommandBounds bounds{
      .arguments = kMostArguments,
      .bytes = static_cast<std::size_t>(desk_.settings->limits.command)};
  InlineVector<std::string_view, 2 * kMostArguments> words;
  std::string_view* const room = words.begin();
  std::size_t taken = 0;
  while (!replies.closing()) {
    if (turn.gathered.empty()) {
      if (replies.IsFull()) break;
      taken = 0;
    }
    const CommandReading reading = reader_.Read(input.subspan(turn.progress.used),
                                                {room + taken, 2 * kMostArguments - taken}, bounds);
    if (reading.kind == CommandReading::Kind::kCommand) [[likely]] {
      turn.progress.used += reading.used;
      if (reading.arguments > 0) TakeUp({room + taken, reading.arguments}, turn);
      taken += reading.arguments;
      continue;
    }
    Decide(turn);
    if (reading.kind == CommandReading::Kind::kNoRoom) continue;
    turn.progress.wants = reading.wants;
    if (reading.kind != CommandReading::Kind::kIncomplete) Stop(reading);
    break;
  }
  return turn.progress;
}

void RespProtocol::Stop(const CommandReading& reading) {
  const bool too_large = reading.kind == CommandReading::Kind::kTooLarge;
  exchange_.door().metrics.Refused(too_large ? Refusal::kCommand : Refusal::kProtocol);
  NewReply().Fail("ERR", ErrorText(reading));
  exchange_.replies().CloseWhenSent();
}

void RespProtocol::TakeUp(Words words, Turn& turn) {
  const CommandRow* const row = resp::FindCommand(words[0]);
  if (row == nullptr) [[unlikely]]
    return TakeUpUnknown(words, turn);
  if (session_.right() < row->right) [[unlikely]]
    return Refuse(*row, turn);
  if (words.size() < row->least || words.size() > row->most) [[unlikely]]
    return Fail(resp::WrongNumberText(row->name), turn);
  Run(*row, words, turn);
  if (turn.gathered.IsFull()) Decide(turn);
}

void RespProtocol::TakeUpUnknown(Words words, Turn& turn) {
  Decide(turn);
  if (IsHttp(words[0])) {
    exchange_.door().metrics.Refused(Refusal::kProtocol);
    return exchange_.replies().CloseWhenSent();
  }
  if (session_.right() == Right::kNone) return RefuseStranger();
  NewReply().Fail("ERR", resp::UnknownCommandText(words));
}

void RespProtocol::Refuse(const CommandRow& row, Turn& turn) {
  Decide(turn);
  if (session_.right() == Right::kNone) return RefuseStranger();
  NewReply().Fail("NOPERM", std::string(row.name) + " needs the right to manage");
}

void RespProtocol::RefuseStranger() {
  exchange_.door().metrics.Refused(Refusal::kToken);
  NewReply().Fail("NOAUTH", "Authentication required.");
}

void RespProtocol::Run(const CommandRow& row, Words words, Turn& turn) {
  switch (row.id) {
    case CommandId::kClThrottle:
      return GatherThrottle(ThrottleStyle::kRedisCell, words.subspan(1), turn);
    case CommandId::kThrottle:
      return GatherThrottle(ThrottleStyle::kThrottlecrab, words.subspan(1), turn);
    case CommandId::kWeirLimit:
      return GatherLimit(words.subspan(1), turn);
    case CommandId::kWeirCheck:
      return Check(words.subspan(1), turn);
    case CommandId::kWeirPeek:
    case CommandId::kWeirReserve:
    case CommandId::kWeirRefund:
    case CommandId::kWeirPenalize:
    case CommandId::kWeirReset:
      Decide(turn);
      return DecideOne(row.id, words.subspan(1), turn);
    case CommandId::kWeirCommit:
    case CommandId::kWeirCancel:
    case CommandId::kWeirRelease:
      Decide(turn);
      return Settle(row.id, words.subspan(1), turn);
    default:
      Decide(turn);
      Reply reply = NewReply();
      return session_.Run(row, words, reply);
  }
}

void RespProtocol::Decide(Turn& turn) {
  Gathered& gathered = turn.gathered;
  if (gathered.empty()) return gathered.Clear();
  if (desk_.asks_later()) return AskGathered(gathered);
  ByteBuffer& out = exchange_.replies().next();
  if (!gathered.checks.empty()) {
    desk_.engine.CheckBatch(gathered.checks.span(), turn.now);
    for (const BatchRequest& check : gathered.checks) {
      WriteDecision(out, session_.version(), check.answer.decision, turn.now.wall);
    }
  } else {
    desk_.engine.CheckLimits(gathered.limits.span(), turn.now);
    for (std::size_t i = 0; i < gathered.limits.size(); ++i) {
      const LimitRequest& request = gathered.limits[i];
      const LimitShape& shape = gathered.shapes[i];
      if (shape.http != HttpForm::kNone) {
        const RuleDecision only{.decision = request.decision,
                                .window = request.limit->refill_time()};
        WriteHttpDecision(out, session_.version(),
                          {.decision = request.decision, .each = {&only, 1}, .now = turn.now},
                          *desk_.settings, shape.http);
      } else if (shape.kind == LimitShape::Kind::kDecision) {
        WriteDecision(out, session_.version(), request.decision, turn.now.wall);
      } else {
        resp::WriteThrottleReply(out,
                                 {.style = StyleOf(shape.kind),
                                  .quantity = shape.quantity,
                                  .burst_tolerance = request.limit->burst_tolerance()},
                                 request.decision);
      }
    }
  }
  const std::size_t decided = gathered.checks.size() + gathered.limits.size();
  exchange_.door().metrics.requests[kReplyRespOk].Add(decided);
  turn.progress.decided += static_cast<std::uint32_t>(decided);
  gathered.Clear();
}

// In a group of their own each, but in the same turn, so that they go to the store together.
void RespProtocol::AskGathered(Gathered& gathered) {
  const Version version = session_.version();
  for (const BatchRequest& check : gathered.checks) {
    AskLater({.kind = Question::Kind::kCheck, .request = check.request, .cost = check.cost},
             {.version = version});
  }
  for (std::size_t i = 0; i < gathered.limits.size(); ++i) {
    const LimitRequest& request = gathered.limits[i];
    AskLater({.kind = Question::Kind::kLimit,
              .cost = request.cost,
              .key = request.key,
              .limit = request.limit,
              .verb = request.verb},
             {.version = version,
              .shape = gathered.shapes[i],
              .burst_tolerance = request.limit->burst_tolerance(),
              .window = request.limit->refill_time()});
  }
  gathered.Clear();
}

void RespProtocol::AskLater(const Question& question, const LateReply& late) {
  exchange_.AskLater(question, {.ticket = exchange_.replies().Hold(), .tag = late.bits()});
}

void RespProtocol::AddLimit(const LimitRequest& request, const LimitShape& shape, Turn& turn) {
  if (!turn.gathered.checks.empty()) Decide(turn);
  turn.gathered.limits.emplace_back(request);
  turn.gathered.shapes.emplace_back(shape);
}

void RespProtocol::GatherThrottle(ThrottleStyle style, Words words, Turn& turn) {
  // The words behind the key as they were sent; with their lengths there is one way only to read
  // them.
  const char* const begin = words[1].data();
  const std::string_view sent(
      begin, static_cast<std::size_t>(words.back().data() + words.back().size() - begin));
  Throttle& throttle = turn.throttle;
  WordSizes sizes{};
  for (std::size_t i = 1; i < words.size(); ++i) sizes[i - 1] = words[i].size();
  const bool alike = throttle.sent == sent && throttle.sizes == sizes && throttle.style == style;
  if (!alike) {
    const Result<Throttle> read = ReadThrottle(style, words);
    if (!read) [[unlikely]]
      return Fail(read.error(), turn);
    throttle = *read;
    throttle.sent = sent;
    throttle.sizes = sizes;
  }
  if (throttle.quantity < 0 && session_.right() < Right::kManage) {
    return Fail(Error{ErrorCode::kForbidden,
                      "a negative quantity gives back, which needs the right to manage"},
                turn);
  }
  const bool cell = style == ThrottleStyle::kRedisCell;
  AddLimit(ThrottleRequest(style, words[0], throttle.limit, throttle.quantity),
           {.kind = cell ? LimitShape::Kind::kRedisCell : LimitShape::Kind::kThrottlecrab,
            .quantity = throttle.quantity},
           turn);
}

Result<RespProtocol::Throttle> RespProtocol::ReadThrottle(ThrottleStyle style, Words words) {
  const Result<resp::ThrottleWords> read = resp::ReadThrottleWords(style, words);
  if (!read) return std::unexpected(read.error());
  const Result<const Limit*> limit = desk_.limits.Find(read->bucket);
  if (!limit) return std::unexpected(limit.error());
  return Throttle{.style = style, .limit = *limit, .quantity = read->quantity};
}

// key limit-text [algorithm] [@cost n] [@http form]
void RespProtocol::GatherLimit(Words words, Turn& turn) {
  const std::string_view key = words[0];
  const std::string_view text = words[1];
  std::string_view algorithm;
  std::int64_t cost = 1;
  HttpForm http = HttpForm::kNone;
  words = words.subspan(2);
  if (words.size() % 2 == 1) {
    algorithm = words[0];
    words = words.subspan(1);
    if (algorithm.starts_with('@')) return Fail(Quoted(algorithm) + ": its value is missing", turn);
  }
  for (; !words.empty(); words = words.subspan(2)) {
    if (words.size() > 2 && words[0] == words[2]) {
      return Fail(Quoted(words[0]) + ": given twice; write it once", turn);
    }
    if (words[0] == "@cost") {
      const Result<std::int64_t> read = resp::ReadCost(words[1]);
      if (!read) return Fail(read.error(), turn);
      cost = *read;
    } else if (words[0] == "@http") {
      const Result<HttpForm> read = resp::ReadHttpForm(words[1]);
      if (!read) return Fail(read.error(), turn);
      http = *read;
    } else {
      return Fail(Quoted(words[0]) + ": no such option; there is @cost @http", turn);
    }
  }
  turn.throttle = {};  // Its limit stays good for a few calls only.
  const Result<const Limit*> limit = desk_.limits.Find(text, algorithm);
  if (!limit) return Fail(limit.error(), turn);
  AddLimit({.key = key, .limit = *limit, .cost = cost}, {.http = http}, turn);
}

void RespProtocol::Check(Words words, Turn& turn) {
  Gathered& gathered = turn.gathered;
  if (!gathered.limits.empty()) Decide(turn);
  BatchRequest& check = gathered.checks.emplace_back(kUnfilled);
  const Result<CheckTerms> terms =
      ReadCheckWords(words, {.wait = true, .http = true}, gathered.values, check.request);
  const bool known = check.request.rules.empty() || desk_.engine.HasRule(words[0]);
  if (terms && known && terms->wait <= Duration(0) && terms->http == HttpForm::kNone) [[likely]] {
    check.cost = terms->cost;
    return;
  }
  const Request request = check.request;
  gathered.checks.pop_back();
  if (!terms) return Fail(terms.error(), turn);
  if (!known) return Fail(UnknownRule(words[0]), turn);
  CheckAlone(words, request, *terms, turn);
}

void RespProtocol::CheckAlone(Words words, const Request& request, const CheckTerms& terms,
                              Turn& turn) {
  if (!turn.gathered.empty()) {
    Decide(turn);  // Which clears what this request refers to.
    return Check(words, turn);
  }
  const LateReply late{.version = session_.version(), .shape = {.http = terms.http}};
  if (terms.wait > Duration(0)) {
    exchange_.CheckWaiting(request, {.cost = terms.cost}, terms.wait,
                           {.ticket = exchange_.replies().Hold(), .tag = late.bits()});
  } else if (desk_.asks_later()) {
    AskLater({.kind = Question::Kind::kCheck, .request = request, .cost = terms.cost}, late);
  } else {
    std::array<RuleDecision, ToldRules::kMost> each;
    const Answer answer = desk_.engine.Check(request, {.cost = terms.cost, .now = turn.now}, each);
    Reply reply = NewReply();
    ++turn.progress.decided;
    WriteHttpDecision(reply.out(), session_.version(),
                      {.decision = answer.decision,
                       .message = answer.message,
                       .each = std::span(each).first(std::min(answer.rules, each.size())),
                       .now = turn.now},
                      *desk_.settings, terms.http);
  }
  turn.gathered.Clear();
}

void RespProtocol::OnAnswered(const ReplyPlace& place, const Told& told) noexcept {
  const LateReply late = LateReply::Of(place.tag);
  ByteBuffer& out = Scratch();
  {
    Reply reply(out, late.version, exchange_.door().metrics);
    if (told.error != nullptr) {
      reply.Fail(*told.error);
    } else if (late.shape.http != HttpForm::kNone) {
      WriteLate(out, late, told);
    } else if (late.shape.kind == LimitShape::Kind::kDecision) {
      WriteDecision(out, late.version, told.answer.decision, desk_.loop.now().wall);
    } else {
      resp::WriteThrottleReply(out,
                               {.style = StyleOf(late.shape.kind),
                                .quantity = late.shape.quantity,
                                .burst_tolerance = late.burst_tolerance},
                               told.answer.decision);
    }
  }
  exchange_.replies().Fill(place.ticket, out.view());
}

void RespProtocol::WriteLate(ByteBuffer& out, const LateReply& late, const Told& told) {
  const Decision& decision = told.answer.decision;
  const RuleDecision only{.decision = decision, .window = late.window};
  const ToldRules rules(desk_.engine, decision,
                        late.window > Duration(0) ? std::span(&only, 1) : told.each);
  WriteHttpDecision(out, late.version,
                    {.decision = decision,
                     .message = told.answer.message,
                     .each = rules.each(),
                     .now = desk_.loop.now()},
                    *desk_.settings, late.shape.http);
}

void RespProtocol::DecideOne(CommandId id, Words words, Turn& turn) {
  const bool manages =
      id == CommandId::kWeirRefund || id == CommandId::kWeirPenalize || id == CommandId::kWeirReset;
  Request request;
  const Result<CheckTerms> terms = ReadCheckWords(
      words, {.cost = id != CommandId::kWeirReset, .ttl = id == CommandId::kWeirReserve},
      turn.gathered.values, request);
  if (!terms) {
    Fail(terms.error(), turn);
  } else if (terms->cost == 0 && id == CommandId::kWeirReserve) {
    Fail("\"@cost\": there is nothing to reserve; write at least 1", turn);
  } else if (request.rules.empty() && manages) {
    Fail("rule: \"*\" is not allowed here; write the name of the rule that is meant", turn);
  } else if (!request.rules.empty() && !desk_.engine.HasRule(words[0])) {
    Fail(UnknownRule(words[0]), turn);
  } else {
    AnswerOne({.kind = KindOf(id), .request = request, .cost = terms->cost, .ttl = terms->ttl},
              turn);
  }
  turn.gathered.values.Clear();
}

// id, and what it really cost for those that can say.
void RespProtocol::Settle(CommandId id, Words words, Turn& turn) {
  const std::optional<ReservationId> reservation = ParseReservation(words[0]);
  if (!reservation) {
    return Fail(
        "id: " + Quoted(words[0]) + " is not allowed; write the 16 hex digits of a reservation",
        turn);
  }
  Question question{.kind = KindOf(id), .reservation = *reservation, .keeps_cost = true};
  if (words.size() > 1) {
    if (words[1] != "@cost") {
      return Fail(Quoted(words[1]) + ": no such option; there is @cost", turn);
    }
    if (words.size() == 2) return Fail("\"@cost\": its value is missing", turn);
    const Result<std::int64_t> read = resp::ReadCost(words[2]);
    if (!read) return Fail(read.error(), turn);
    question.cost = *read;
    question.keeps_cost = false;
  }
  AnswerOne(question, turn);
}

void RespProtocol::AnswerOne(const Question& question, Turn& turn) {
  if (desk_.asks_later()) return AskLater(question, {.version = session_.version()});
  const Result<Answer> answer = AskAtOnce(desk_.engine, question, turn.now);
  Reply reply = NewReply();
  if (!answer) return reply.Fail(answer.error());
  ++turn.progress.decided;
  WriteDecision(reply.out(), session_.version(), answer->decision, turn.now.wall);
}

}  // namespace

std::unique_ptr<Protocol> MakeRespProtocol(Exchange& exchange) {
  return std::make_unique<RespProtocol>(exchange);
}

}  // namespace weir
