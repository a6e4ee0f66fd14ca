#include "frontend/http/endpoints.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "frontend/ask_at_once.h"
#include "frontend/decision_json.h"
#include "frontend/error_table.h"
#include "frontend/http/openapi.h"
#include "frontend/invalid_argument.h"
#include "frontend/json_string.h"
#include "frontend/named_rules.h"
#include "limit/limit_words.h"

namespace weir {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kTextType = "text/plain; charset=utf-8";
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4";

constexpr std::size_t kMostBatchItems = 1'000;
constexpr std::size_t kMostTopKeys = 1'000;
constexpr std::size_t kUsualTopKeys = 20;

struct TopCount {
  std::size_t keys = kUsualTopKeys;
  bool is_valid = true;
};

// n=20, and nothing else.
TopCount ReadTopCount(std::string_view query) {
  if (query.empty()) return {};
  TopCount count;
  const char* const end = query.data() + query.size();
  if (!query.starts_with("n=")) return {.is_valid = false};
  const auto [last, error] = std::from_chars(query.data() + 2, end, count.keys);
  count.is_valid =
      error == std::errc() && last == end && count.keys >= 1 && count.keys <= kMostTopKeys;
  return count;
}

RequestBodyReader::Form FormOf(HttpEndpoint endpoint) noexcept {
  switch (endpoint) {
    case HttpEndpoint::kReserve:
      return {.allowed = kReserveFields};
    case HttpEndpoint::kLimit:
      return {.allowed = kLimitFields,
              .required = SetOf(BodyField::kKey) | SetOf(BodyField::kLimit)};
    case HttpEndpoint::kCommit:
      return {.allowed = kCommitFields, .required = kSettleFields};
    case HttpEndpoint::kCancel:
    case HttpEndpoint::kRelease:
      return {.allowed = kSettleFields, .required = kSettleFields};
    default:
      return {.allowed = kCheckFields};
  }
}

Question::Kind KindOf(HttpEndpoint endpoint) noexcept {
  switch (endpoint) {
    case HttpEndpoint::kReserve:
      return Question::Kind::kReserve;
    case HttpEndpoint::kLimit:
      return Question::Kind::kLimit;
    case HttpEndpoint::kCommit:
      return Question::Kind::kCommit;
    case HttpEndpoint::kCancel:
    case HttpEndpoint::kRelease:
      return Question::Kind::kCancel;
    case HttpEndpoint::kRefund:
      return Question::Kind::kRefund;
    case HttpEndpoint::kPenalize:
      return Question::Kind::kPenalize;
    case HttpEndpoint::kReset:
      return Question::Kind::kReset;
    default:
      return Question::Kind::kPeek;
  }
}

}  // namespace

EndpointReply HttpEndpoints::Serve(const Call& call) {
  switch (call.endpoint) {
    case HttpEndpoint::kCheckBatch:
      return ServeBatch(call);
    case HttpEndpoint::kLimits:
      return Text(kJsonType, bench_.limits.TextOf(desk_.engine.policy()), call.form);
    case HttpEndpoint::kTop:
      return Top(call);
    case HttpEndpoint::kHealth:
      return Text(kTextType, "ok", call.form);
    case HttpEndpoint::kReadiness:
      return Readiness(call.form);
    case HttpEndpoint::kMetrics:
      return Text(kMetricsType, desk_.state.MetricsText(), call.form);
    case HttpEndpoint::kOpenApi:
      return Text(kJsonType, OpenApiJson(), call.form);
    default:
      return ServeQuestion(call);
  }
}

EndpointReply HttpEndpoints::Refuse(const Error& error, const ReplyForm& form) {
  const ErrorRow& row = RowOf(error.code);
  bench_.writer.Refuse(out_, {.status = row.http, .name = row.name, .message = error.message},
                       form);
  return {.status = row.http};
}

std::optional<Error> HttpEndpoints::ReadBody(const Call& call,
                                             const RequestBodyReader::Form& form) {
  if (auto error = bench_.reader.Read(call.body, form, bench_.body)) return error;
  return FindUnknownRule(desk_.engine, bench_.body.request);
}

bool HttpEndpoints::IsQuestion(HttpEndpoint endpoint) noexcept {
  return endpoint >= HttpEndpoint::kLimit && endpoint <= HttpEndpoint::kReset;
}

AnswerStyle HttpEndpoints::StyleOf(HttpEndpoint endpoint) noexcept {
  switch (endpoint) {
    case HttpEndpoint::kCheck:
    case HttpEndpoint::kReserve:
      return AnswerStyle::kDecision;
    case HttpEndpoint::kLimit:
      return AnswerStyle::kLimit;
    case HttpEndpoint::kCheckBatch:
      return AnswerStyle::kBatchItem;
    default:
      return AnswerStyle::kStatement;
  }
}

std::optional<Error> HttpEndpoints::ReadQuestion(const Call& call, Question& question) {
  if (auto error = ReadBody(call, FormOf(call.endpoint))) return error;
  const RequestBody& body = bench_.body;
  if (call.endpoint == HttpEndpoint::kReserve && body.cost == 0) {
    return InvalidArgument("cost: there is nothing to reserve; write at least 1");
  }
  question = {.kind = KindOf(call.endpoint),
              .request = body.request,
              .cost = body.cost,
              .ttl = body.ttl,
              .reservation = body.reservation,
              .keeps_cost = (body.seen & SetOf(BodyField::kCost)) == 0,
              .key = body.key};
  if (call.endpoint == HttpEndpoint::kLimit) return ReadLimit(question);
  return std::nullopt;
}

std::optional<Error> HttpEndpoints::ReadLimit(Question& question) {
  const RequestBody& body = bench_.body;
  if ((body.seen & SetOf(BodyField::kAlgorithm)) != 0) {
    const Result<Algorithm> known = ParseAlgorithm(body.algorithm);
    if (!known) return InvalidArgument("algorithm: " + known.error().message);
  }
  const Result<const Limit*> limit = desk_.limits.Find(body.limit, body.algorithm);
  if (!limit) return limit.error();
  question.limit = *limit;
  return std::nullopt;
}

EndpointReply HttpEndpoints::ServeQuestion(const Call& call) {
  Question question;
  if (const auto error = ReadQuestion(call, question)) return Refuse(*error, call.form);
  const Result<weir::Answer> answer = AskAtOnce(desk_.engine, question, now_);
  const Told told{.answer = answer ? *answer : weir::Answer{},
                  .error = answer ? nullptr : &answer.error()};
  EndpointReply reply = Answer(
      told, {.style = StyleOf(call.endpoint),
             .window = question.limit != nullptr ? question.limit->refill_time() : Duration(0),
             .form = call.form});
  reply.decided = answer ? 1 : 0;
  return reply;
}

EndpointReply HttpEndpoints::Answer(const Told& told, const AnswerForm& form) {
  if (told.error != nullptr) return Refuse(*told.error, form.form);
  const Decision& decision = told.answer.decision;
  if (form.style == AnswerStyle::kStatement) {
    bench_.writer.Tell(out_, {.decision = decision, .now = now_}, form.form);
    return {};
  }
  if (form.style == AnswerStyle::kLimit) {
    const RuleDecision only{.decision = decision, .window = form.window};
    return {.status =
                bench_.writer.Decide(out_, {.decision = decision, .each = {&only, 1}, .now = now_},
                                     *desk_.settings, form.form)};
  }
  const ToldRules rules(desk_.engine, decision, told.each);
  return {
      .status = bench_.writer.Decide(
          out_,
          {.decision = decision, .message = told.answer.message, .each = rules.each(), .now = now_},
          *desk_.settings, form.form)};
}

std::optional<Error> HttpEndpoints::ReadBatch(const Call& call, std::vector<RequestBody>& bodies,
                                              std::vector<BatchRequest>& batch) {
  if (auto error =
          bench_.reader.ReadList(call.body, {.allowed = kCheckFields}, kMostBatchItems, bodies)) {
    return error;
  }
  batch.reserve(bodies.size());
  for (const RequestBody& body : bodies) {
    if (const auto error = FindUnknownRule(desk_.engine, body.request)) {
      return InvalidArgument("[" + std::to_string(batch.size()) + "]." + error->message);
    }
    batch.push_back({.request = body.request, .cost = body.cost});
  }
  return std::nullopt;
}

EndpointReply HttpEndpoints::ServeBatch(const Call& call) {
  std::vector<RequestBody> bodies;
  std::vector<BatchRequest> batch;
  if (const auto error = ReadBatch(call, bodies, batch)) return Refuse(*error, call.form);
  desk_.engine.CheckBatch(batch, now_);
  std::vector<Decision> decisions;
  decisions.reserve(batch.size());
  for (const BatchRequest& item : batch) decisions.push_back(item.answer.decision);
  EndpointReply reply = AnswerBatch(decisions, call.form);
  reply.decided = static_cast<std::uint32_t>(batch.size());
  return reply;
}

EndpointReply HttpEndpoints::AnswerBatch(std::span<const Decision> decisions,
                                         const ReplyForm& form) {
  ByteBuffer& text = bench_.list;
  text.Clear();
  text.Append("[");
  for (const Decision& decision : decisions) {
    if (text.size() > 1) text.Append(",");
    AppendDecision(text, decision, FieldsOf(decision, now_.wall));
  }
  text.Append("]");
  return Text(kJsonType, text.view(), form);
}

EndpointReply HttpEndpoints::Top(const Call& call) {
  const TopCount count = ReadTopCount(call.query);
  if (!count.is_valid) {
    return Refuse(
        InvalidArgument("n: write ?n= and a whole number, 1 to " + std::to_string(kMostTopKeys)),
        call.form);
  }
  std::string text = "{\"keys\":[";
  for (const DeniedKey& denied : desk_.engine.TopDenied(count.keys)) {
    if (text.back() != '[') text += ",";
    text += "{\"rule\":";
    AppendJsonString(text, denied.rule);
    text += ",\"key\":";
    AppendJsonString(text, denied.key);
    text += ",\"denials\":" + std::to_string(denied.denials);
    text += ",\"error\":" + std::to_string(denied.error) + "}";
  }
  return Text(kJsonType, text += "]}", call.form);
}

EndpointReply HttpEndpoints::Readiness(const ReplyForm& form) {
  constexpr int kUnavailable = 503;
  switch (desk_.state.readiness()) {
    case ServiceState::Readiness::kReady:
      return Text(kTextType, "ready", form);
    case ServiceState::Readiness::kDegraded:
      return Text(kTextType, "degraded", form);
    case ServiceState::Readiness::kDraining:
      return Text(kTextType, "draining", form, kUnavailable);
    default:
      return Text(kTextType, "starting", form, kUnavailable);
  }
}

EndpointReply HttpEndpoints::Text(std::string_view type, std::string_view text,
                                  const ReplyForm& form, int status) {
  constexpr std::string_view kName = "Content-Type";
  constexpr std::size_t kAround = 4;
  HttpResponseWriter response(out_, {.status = status,
                                     .persistence = form.persistence,
                                     .without_body = form.without_body,
                                     .room = kName.size() + type.size() + kAround,
                                     .date = bench_.writer.date()});
  response.Header(kName, type);
  response.Finish(text);
  return {.status = status};
}

}  // namespace weir
