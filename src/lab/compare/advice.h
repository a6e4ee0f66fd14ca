// Which algorithm? A few wishes in, one recommendation out, with its reason, its price and a policy
// to begin with. Wishes that exclude each other are named, and which of them is kept.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/limit.h>
#include <weir/result.h>

#include "lab/report.h"

namespace weir::lab {

struct Question {
  std::string_view name;  // bursts
  std::string_view text;
  bool by_default;
};

inline constexpr std::array<Question, 5> kQuestions = {{
    {"bursts", "May a client that was quiet send many requests at once?", true},
    {"strict", "Must the limit hold in every window, wherever it begins, without exception?",
     false},
    {"smooth", "Shall requests wait for their turn and go ahead evenly, rather than be refused?",
     false},
    {"memory", "Are there so many keys that memory for each of them matters?", false},
    {"resets", "Shall counts start again at fixed times: a full minute, midnight, Monday?", false},
}};

struct Wishes {
  bool bursts = true;
  bool strict = false;
  bool smooth = false;
  bool memory = false;
  bool resets = false;
};

// What was answered so far, in the order of the questions.
using Answers = std::array<std::optional<bool>, kQuestions.size()>;

// "yes", "n"; in whatever case. Nothing if it is no answer.
std::optional<bool> ParseAnswer(std::string_view text);
// Adds "bursts=yes". The error says what may be written.
[[nodiscard]] Result<void> AddAnswer(std::string_view text, Answers& answers);
// Unanswered questions have their default.
Wishes WishesOf(const Answers& answers);

struct Advice {
  std::string name{};  // sliding_window strict
  LimitSpec spec{};
  std::vector<std::string> conflicts{};  // Each names two wishes, and how it was settled.
  std::string reason{};
  std::string given_up{};
  std::string second{};  // The next best, and when to take it.
  std::string policy{};  // In YAML; loads without a word of advice.
};

// `limit` is a token bucket; its burst counts if it has one of its own. An error if the algorithm
// cannot count it.
[[nodiscard]] Result<Advice> Advise(const Wishes& wishes, const Limit& limit);

Report ReportOf(const Advice& advice);
std::string JsonOf(const Advice& advice, const Wishes& wishes);

}  // namespace weir::lab
