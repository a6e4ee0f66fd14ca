// What is answered to the questions of an advice.
#include <algorithm>
#include <string>

#include "lab/compare/advice.h"
#include "limit/limit_words.h"
#include "policy/spec_reader.h"

namespace weir::lab {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

std::unexpected<Error> Refused(std::string message) {
  return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
}

}  // namespace

std::optional<bool> ParseAnswer(std::string_view text) {
  const std::string answer = Lower(text);
  if (answer == "y" || answer == "yes" || answer == "true") return true;
  if (answer == "n" || answer == "no" || answer == "false") return false;
  return std::nullopt;
}

Result<void> AddAnswer(std::string_view text, Answers& answers) {
  const std::size_t sign = text.find('=');
  const std::string_view name = text.substr(0, sign);
  const auto question = std::ranges::find(kQuestions, name, &Question::name);
  if (question == kQuestions.end()) {
    std::array<std::string_view, kQuestions.size()> names;
    std::ranges::transform(kQuestions, names.begin(), &Question::name);
    const auto meant = Nearest(name, names);
    return Refused("there is no question " + Quoted(name) +
                   (meant ? "; did you mean " + std::string(*meant) + "?"
                          : "; there are bursts, strict, smooth, memory and resets"));
  }
  const std::string_view value = sign == std::string_view::npos ? "" : text.substr(sign + 1);
  const std::optional<bool> answer = ParseAnswer(value);
  if (!answer) {
    return Refused(Quoted(value) + " is no answer; write " + std::string(name) + "=yes or " +
                   std::string(name) + "=no");
  }
  std::optional<bool>& known = answers[static_cast<std::size_t>(question - kQuestions.begin())];
  if (known && *known != *answer) return Refused(std::string(name) + " is answered both ways");
  known = answer;
  return {};
}

Wishes WishesOf(const Answers& answers) {
  const auto wish = [&](std::size_t i) { return answers[i].value_or(kQuestions[i].by_default); };
  return {.bursts = wish(0),
          .strict = wish(1),
          .smooth = wish(2),
          .memory = wish(3),
          .resets = wish(4)};
}

}  // namespace weir::lab
