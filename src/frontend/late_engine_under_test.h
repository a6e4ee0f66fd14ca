// What the tests of those share who ask and are answered later: a LoopEngine that decides on an
// engine in memory, and tells it when the test says so, in whatever order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <weir/engine.h>

#include "engine/loop_engine.h"
#include "frontend/ask_at_once.h"

namespace weir {

class LateEngine final : public LoopEngine {
 public:
  LateEngine(Engine& engine, Loop& loop) noexcept : engine_(engine), loop_(loop) {}
  LateEngine(const LateEngine&) = delete;
  LateEngine& operator=(const LateEngine&) = delete;
  ~LateEngine() override { AnswerAll(); }

  void Ask(const Question& question, Done done) override {
    kinds.push_back(question.kind);
    Asked asked{.done = std::move(done)};
    Decide(question, asked);
    if (at_once) return Tell(std::move(asked));
    asked_.push_back(std::move(asked));
  }
  bool is_shared() const noexcept override { return true; }
  void TakeUpStore() override {}
  std::size_t pending() const noexcept override { return asked_.size(); }

  // One of those that are pending, counted from the oldest.
  void Answer(std::size_t number) {
    Asked asked = std::move(asked_[number]);
    asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(number));
    Tell(std::move(asked));
  }
  void AnswerAll() {
    while (!asked_.empty()) Answer(0);
  }
  void AnswerAllBackwards() {
    while (!asked_.empty()) Answer(asked_.size() - 1);
  }

  bool at_once = false;               // Before Ask returns.
  std::optional<Error> error{};       // What those are told who settle.
  std::optional<Decision> instead{};  // What all others are told.
  std::vector<Question::Kind> kinds;  // All that was asked.

 private:
  struct Asked {
    Done done{};
    weir::Answer answer{};
    std::vector<RuleDecision> each{};
    std::optional<Error> error{};
  };

  void Decide(const Question& question, Asked& asked) {
    const bool settles =
        question.kind == Question::Kind::kCommit || question.kind == Question::Kind::kCancel;
    if (settles && error) {
      asked.error = error;
    } else if (!settles && instead) {
      asked.answer.decision = *instead;
    } else if (question.kind == Question::Kind::kCheck) {
      asked.each.resize(kMaxRules);
      asked.answer =
          engine_.Check(question.request, {.cost = question.cost, .now = loop_.now()}, asked.each);
      asked.each.resize(std::min(asked.answer.rules, kMaxRules));
    } else if (question.kind == Question::Kind::kCheckTogether) {
      asked.each.resize(question.parts.size());
      asked.answer = engine_.CheckTogether(question.parts, loop_.now(), asked.each);
    } else if (question.kind == Question::Kind::kRefundTogether) {
      asked.each.resize(question.parts.size());
      asked.answer = engine_.RefundTogether(question.parts, loop_.now(), asked.each);
    } else {
      const Result<weir::Answer> answer = AskAtOnce(engine_, question, loop_.now());
      if (answer) {
        asked.answer = *answer;
      } else {
        asked.error = answer.error();
      }
    }
  }
  static void Tell(Asked asked) {
    asked.done({.answer = asked.answer,
                .each = asked.each,
                .error = asked.error ? &*asked.error : nullptr});
  }

  static constexpr std::size_t kMaxRules = 64;
  Engine& engine_;
  Loop& loop_;
  std::vector<Asked> asked_;
};

}  // namespace weir
