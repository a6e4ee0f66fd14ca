#include "frontend/http/endpoints.h"

#include <charconv>
#include <string>
#include <vector>

#include "frontend/error_table.h"
#include "frontend/http/json_string.h"
#include "frontend/http/openapi.h"
#include "limit/limit_words.h"

namespace weir {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kTextType = "text/plain; charset=utf-8";
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4";

constexpr std::size_t kMostBatchItems = 1'000;
constexpr std::size_t kMostTopKeys = 1'000;
constexpr std::size_t kUsualTopKeys = 20;

Error Invalid(std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
}

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

}  // namespace

std::optional<Error> FindUnknownRule(const Engine& engine, const Request& request) {
  for (const std::string_view rule : request.rules) {
    if (!engine.HasRule(rule)) return Invalid("rules: there is no rule " + Quoted(rule));
  }
  return std::nullopt;
}

EndpointReply HttpEndpoints::Serve(const Call& call) {
  switch (call.endpoint) {
    case HttpEndpoint::kCheckBatch:
      return Batch(call);
    case HttpEndpoint::kLimit:
      return CheckLimit(call);
    case HttpEndpoint::kCommit:
    case HttpEndpoint::kCancel:
    case HttpEndpoint::kRelease:
      return Settle(call);
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
      return Decide(call);
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

EndpointReply HttpEndpoints::Decide(const Call& call) {
  if (const auto error = ReadBody(call, FormOf(call.endpoint))) return Refuse(*error, call.form);
  const Request& request = bench_.body.request;
  const Ask ask{.cost = bench_.body.cost, .now = now_};
  Engine& engine = desk_.engine;
  Answer answer;
  switch (call.endpoint) {
    case HttpEndpoint::kReserve: {
      if (ask.cost == 0) {
        return Refuse(
            {ErrorCode::kInvalidArgument, "cost: there is nothing to reserve; write at least 1"},
            call.form);
      }
      answer = engine.Reserve(request, ask, bench_.body.ttl);
      const int status = bench_.writer.Decide(
          out_, {.decision = answer.decision, .message = answer.message, .now = now_},
          *desk_.settings, call.form);
      return {.status = status, .decided = 1};
    }
    case HttpEndpoint::kRefund:
      answer = engine.Refund(request, ask);
      break;
    case HttpEndpoint::kPenalize:
      answer = engine.Penalize(request, ask);
      break;
    case HttpEndpoint::kReset:
      answer = engine.Reset(request, ask);
      break;
    default:
      answer = engine.Peek(request, ask);
  }
  bench_.writer.Tell(out_, {.decision = answer.decision, .now = now_}, call.form);
  return {.decided = 1};
}

EndpointReply HttpEndpoints::Batch(const Call& call) {
  std::vector<RequestBody> bodies;
  if (const auto error =
          bench_.reader.ReadList(call.body, {.allowed = kCheckFields}, kMostBatchItems, bodies)) {
    return Refuse(*error, call.form);
  }
  std::vector<BatchRequest> batch;
  batch.reserve(bodies.size());
  for (const RequestBody& body : bodies) {
    if (const auto error = FindUnknownRule(desk_.engine, body.request)) {
      return Refuse(Invalid("[" + std::to_string(batch.size()) + "]." + error->message), call.form);
    }
    batch.push_back({.request = body.request, .cost = body.cost});
  }
  desk_.engine.CheckBatch(batch, now_);
  ByteBuffer& text = bench_.text;
  text.Clear();
  text.Append("[");
  for (const BatchRequest& item : batch) {
    if (text.size() > 1) text.Append(",");
    ReplyWriter::AppendDecision(text, {.decision = item.answer.decision, .now = now_});
  }
  text.Append("]");
  EndpointReply reply = Text(kJsonType, text.view(), call.form);
  reply.decided = static_cast<std::uint32_t>(batch.size());
  return reply;
}

EndpointReply HttpEndpoints::CheckLimit(const Call& call) {
  if (const auto error = ReadBody(call, FormOf(call.endpoint))) return Refuse(*error, call.form);
  const RequestBody& body = bench_.body;
  const Result<const Limit*> limit = desk_.limits.Find(body.limit, body.algorithm);
  if (!limit) return Refuse(limit.error(), call.form);
  LimitRequest request{.key = body.key, .limit = *limit, .cost = body.cost};
  desk_.engine.CheckLimits({&request, 1}, now_);
  const int status = bench_.writer.Decide(out_, {.decision = request.decision, .now = now_},
                                          *desk_.settings, call.form);
  return {.status = status, .decided = 1};
}

EndpointReply HttpEndpoints::Settle(const Call& call) {
  if (const auto error = ReadBody(call, FormOf(call.endpoint))) return Refuse(*error, call.form);
  const RequestBody& body = bench_.body;
  const bool commits = call.endpoint == HttpEndpoint::kCommit;
  const bool says_cost = (body.seen & SetOf(BodyField::kCost)) != 0;
  const Result<Decision> settled = commits && says_cost
                                       ? desk_.engine.Commit(body.reservation, body.cost)
                                   : commits ? desk_.engine.Commit(body.reservation)
                                             : desk_.engine.Cancel(body.reservation);
  if (!settled) return Refuse(settled.error(), call.form);
  bench_.writer.Tell(out_, {.decision = *settled, .now = now_}, call.form);
  return {.decided = 1};
}

EndpointReply HttpEndpoints::Top(const Call& call) {
  const TopCount count = ReadTopCount(call.query);
  if (!count.is_valid) {
    return Refuse(Invalid("n: write ?n= and a whole number, 1 to " + std::to_string(kMostTopKeys)),
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
                                     .room = kName.size() + type.size() + kAround});
  response.Header(kName, type);
  response.Finish(text);
  return {.status = status};
}

}  // namespace weir
