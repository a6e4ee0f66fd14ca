#include "frontend/http/late_replies.h"

#include <utility>

namespace weir {

void LateReplies::Wait(const PendingCheck& check) {
  const LateTag tag{.form = check.form, .number = check.number};
  exchange_.CheckWaiting(
      check.body.request, {.cost = check.body.cost, .now = exchange_.door().desk.loop.now()},
      check.body.wait, {.ticket = exchange_.replies().Hold(), .tag = tag.bits()});
}

void LateReplies::Queue(const PendingCheck& check) {
  const LateTag tag{.form = check.form, .number = check.number};
  exchange_.CheckQueueing(
      check.body.request, {.cost = check.body.cost, .now = exchange_.door().desk.loop.now()},
      check.body.wait, {.ticket = exchange_.replies().Hold(), .tag = tag.bits()});
}

void LateReplies::AskCheck(const PendingCheck& check) {
  const LateTag tag{.form = check.form, .number = check.number};
  exchange_.AskLater(
      {.kind = Question::Kind::kCheck, .request = check.body.request, .cost = check.body.cost},
      {.ticket = exchange_.replies().Hold(), .tag = tag.bits()});
}

std::optional<Error> LateReplies::Ask(HttpEndpoints& endpoints, const Call& call) {
  if (call.http.endpoint == HttpEndpoint::kCheckBatch) return AskBatch(endpoints, call);
  Question question;
  if (auto error = endpoints.ReadQuestion(call.http, question)) return error;
  const LateTag tag{.form = call.http.form,
                    .style = HttpEndpoints::StyleOf(call.http.endpoint),
                    .number = call.number};
  if (question.limit != nullptr) records_[call.number].window = question.limit->refill_time();
  exchange_.AskLater(question, {.ticket = exchange_.replies().Hold(), .tag = tag.bits()});
  return std::nullopt;
}

LateReplies::~LateReplies() {
  for (const auto& [number, record] : records_) {
    for (const Decision& decision : record.decisions) {
      exchange_.door().desk.CancelForNobody(decision.reservation);
    }
  }
}

std::optional<Error> LateReplies::AskBatch(HttpEndpoints& endpoints, const Call& call) {
  std::vector<RequestBody> bodies;
  std::vector<BatchRequest> batch;
  if (auto error = endpoints.ReadBatch(call.http, bodies, batch)) return error;
  if (batch.empty()) {
    endpoints.AnswerBatch({}, call.http.form);
    return std::nullopt;
  }
  // As heavy as the questions it asks, so that the bound on those under way holds for them.
  const Replies::Ticket ticket = exchange_.replies().Hold(batch.size());
  Record& record = records_[call.number];
  record.decisions.resize(batch.size());
  record.missing = batch.size();
  LateTag tag{.form = call.http.form, .style = AnswerStyle::kBatchItem, .number = call.number};
  for (const BatchRequest& item : batch) {
    exchange_.AskLater({.kind = Question::Kind::kCheck, .request = item.request, .cost = item.cost},
                       {.ticket = ticket, .tag = tag.bits()});
    ++tag.item;
  }
  return std::nullopt;
}

std::optional<int> LateReplies::Fill(const ReplyPlace& place, const ReplyForm& form,
                                     const Told& told) {
  const LateTag tag = LateTag::Of(place.tag);
  if (tag.style == AnswerStyle::kBatchItem) return FillBatch(place, form, told);
  HttpEndpoints::AnswerForm answer{.style = tag.style, .form = form};
  if (tag.style == AnswerStyle::kLimit) {
    const auto record = records_.extract(tag.number);
    if (!record.empty()) answer.window = record.mapped().window;
  }
  Desk& desk = exchange_.door().desk;
  HttpWorkbench& bench = HttpWorkbench::Mine(desk.loop.now().wall);
  bench.text.Clear();
  const EndpointReply reply = HttpEndpoints(desk, bench, bench.text).Answer(told, answer);
  exchange_.replies().Fill(place.ticket, bench.text.view());
  return reply.status;
}

std::optional<int> LateReplies::FillBatch(const ReplyPlace& place, const ReplyForm& form,
                                          const Told& told) {
  const LateTag tag = LateTag::Of(place.tag);
  const auto record = records_.find(tag.number);
  if (record == records_.end()) return std::nullopt;
  record->second.decisions[tag.item] = told.answer.decision;
  if (--record->second.missing > 0) return std::nullopt;
  const std::vector<Decision> decisions = std::move(record->second.decisions);
  records_.erase(record);
  Desk& desk = exchange_.door().desk;
  HttpWorkbench& bench = HttpWorkbench::Mine(desk.loop.now().wall);
  bench.text.Clear();
  const EndpointReply reply = HttpEndpoints(desk, bench, bench.text).AnswerBatch(decisions, form);
  exchange_.replies().Fill(place.ticket, bench.text.view());
  return reply.status;
}

}  // namespace weir
