#include "frontend/ask_at_once.h"

namespace weir {
namespace {

Answer CheckLimit(Engine& engine, const Question& question, Now now) {
  LimitRequest request{
      .key = question.key, .limit = question.limit, .cost = question.cost, .verb = question.verb};
  engine.CheckLimits({&request, 1}, now);
  return {.decision = request.decision};
}

Result<Answer> AnswerOf(const Result<Decision>& decision) {
  if (!decision) return std::unexpected(decision.error());
  return Answer{.decision = *decision};
}

}  // namespace

Result<Answer> AskAtOnce(Engine& engine, const Question& question, Now now) {
  const Ask ask{.cost = question.cost, .now = now};
  switch (question.kind) {
    case Question::Kind::kPeek:
      return engine.Peek(question.request, ask);
    case Question::Kind::kReserve:
      return engine.Reserve(question.request, ask, question.ttl);
    case Question::Kind::kRefund:
      return engine.Refund(question.request, ask);
    case Question::Kind::kPenalize:
      return engine.Penalize(question.request, ask);
    case Question::Kind::kReset:
      return engine.Reset(question.request, ask);
    case Question::Kind::kCommit:
      return AnswerOf(question.keeps_cost ? engine.Commit(question.reservation)
                                          : engine.Commit(question.reservation, question.cost));
    case Question::Kind::kCancel:
      return AnswerOf(engine.Cancel(question.reservation));
    case Question::Kind::kLimit:
      return CheckLimit(engine, question, now);
    default:
      return engine.Check(question.request, ask);
  }
}

}  // namespace weir
