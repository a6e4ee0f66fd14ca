#include "server/compare_command.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <variant>

#include "lab/compare/advice.h"
#include "lab/compare/comparison.h"
#include "limit/limit_words.h"
#include "policy/file_text.h"
#include "policy/spec_reader.h"
#include "server/output_file.h"

namespace weir {
namespace {

constexpr std::size_t kMaxTrafficBytes = std::size_t{512} << 20;
constexpr const char* kLimitForAdvice = "100/min";

// Said, and what the command ends with.
struct CommandFailure {
  std::string message;
  int code = kExitUsage;
};
template <typename T>
using OrFailure = std::expected<T, CommandFailure>;

std::unexpected<CommandFailure> Refuse(std::string message, int code = kExitUsage) {
  return std::unexpected(CommandFailure{std::move(message), code});
}

// A token bucket, which every count and period can be compared as.
OrFailure<Limit> LimitOf(const CompareOptions& options, const std::string& text) {
  if (text.empty()) return Refuse("which limit? write weir compare 100/s");
  Result<Limit> limit = Limit::Parse(text);
  if (!limit) return Refuse(limit.error().message);
  if (limit->kind() != LimitKind::kCounted || limit->algorithm() != Algorithm::kTokenBucket) {
    return Refuse("limit " + Quoted(text) +
                  ": there is nothing to compare; write so many in a "
                  "time, such as 100/s");
  }
  if (options.burst == 0) return *limit;
  LimitSpec spec = limit->spec();
  if (spec.burst != 0 && spec.burst != options.burst) {
    return Refuse("the limit says burst " + std::to_string(spec.burst) + ", --burst says " +
                  std::to_string(options.burst));
  }
  spec.burst = options.burst;
  limit = Limit::Make(spec);
  if (!limit) return Refuse(limit.error().message);
  return *limit;
}

OrFailure<lab::Traffic> TrafficFrom(const CompareOptions& options, Duration period,
                                    std::istream& in) {
  const bool from_input = options.traffic == kStandardInput;
  std::error_code ignored;
  if (!from_input && !std::filesystem::exists(options.traffic, ignored)) {
    const auto meant = Nearest(options.traffic, lab::kShapeNames);
    return Refuse("there is neither a traffic nor a file " + Quoted(options.traffic) +
                  (meant
                       ? "; did you mean " + std::string(*meant) + "?"
                       : "; there are steady, poisson, burst, boundary, late-window and diurnal"));
  }
  if (options.load > 0 || !options.duration.empty()) {
    return Refuse(
        "--load and --duration are for traffic that is made up; what comes from a file is "
        "taken as it is");
  }
  const Result<std::string> text =
      from_input ? ReadAll(in, kMaxTrafficBytes) : ReadWholeFile(options.traffic, kMaxTrafficBytes);
  if (!text) return Refuse(text.error().message, kExitProblems);
  const std::string name = from_input ? kStandardInputName : options.traffic;
  Result<lab::Traffic> traffic = lab::ReadTraffic(*text, name, period);
  if (!traffic) return Refuse(traffic.error().message, kExitProblems);
  return *std::move(traffic);
}

OrFailure<lab::Traffic> TrafficOf(const CompareOptions& options, const Limit& limit,
                                  std::istream& in) {
  const auto shape = std::ranges::find(lab::kShapeNames, std::string_view(options.traffic));
  if (shape == lab::kShapeNames.end()) return TrafficFrom(options, limit.spec().period, in);
  std::optional<Duration> duration = Duration(0);
  if (!options.duration.empty()) {
    duration = ParseLength(options.duration);
    if (!duration || *duration <= Duration(0)) {
      return Refuse("--duration: " + Quoted(options.duration) + " is no time; write 30s or 10min");
    }
  }
  Result<lab::Traffic> traffic =
      lab::MakeTraffic({.shape = static_cast<lab::Shape>(shape - lab::kShapeNames.begin()),
                        .count = limit.spec().count,
                        .period = limit.spec().period,
                        .load = options.load,
                        .duration = *duration,
                        .seed = options.seed});
  if (!traffic) return Refuse(traffic.error().message);
  return *std::move(traffic);
}

// Asks what was not answered yet.
OrFailure<lab::Wishes> Interview(const CompareOptions& options, const Console& console) {
  lab::Answers answers;
  for (const std::string& text : options.answers) {
    const Result<void> added = lab::AddAnswer(text, answers);
    if (!added) return Refuse(added.error().message);
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const lab::Question& question = lab::kQuestions[i];
    while (!answers[i]) {
      console.err << question.text << (question.by_default ? " [Y/n] " : " [y/N] ") << std::flush;
      std::string line;
      if (!std::getline(console.in, line)) {
        console.err << '\n';
        return Refuse("not answered: " + std::string(question.name) + "; write --answer " +
                      std::string(question.name) + "=yes or " + std::string(question.name) + "=no");
      }
      line.erase(std::ranges::remove_if(line, [](char c) { return c == ' ' || c == '\r'; }).begin(),
                 line.end());
      answers[i] = line.empty() ? question.by_default : lab::ParseAnswer(line);
      if (!answers[i]) console.err << "Please answer yes or no.\n";
    }
  }
  return lab::WishesOf(answers);
}

// What was found, in the forms that were asked for.
struct ComparisonOutput {
  lab::Report report{};
  std::string json{};
  std::optional<lab::Panels> picture{};
};

int Show(const ComparisonOutput& output, const CompareOptions& options, const Console& console) {
  const std::pair<std::string, std::string> files[] = {
      {options.html, options.html.empty() ? "" : lab::ReportPage(output.report)},
      {options.svg, options.svg.empty() || !output.picture
                        ? ""
                        : lab::PanelsSvg(*output.picture, {.width = 860, .height = 190})}};
  for (const auto& [path, text] : files) {
    if (path.empty()) continue;
    const Result<void> written = WriteOutputFile(path, text);
    if (written) continue;
    console.err << "weir compare: " << written.error().message << '\n';
    return kExitProblems;
  }
  if (options.json) {
    console.out << output.json;
    return kExitOk;
  }
  // Many plots are for a page; in a terminal the tables say the same.
  lab::Report report = output.report;
  std::erase_if(report.sections, [](const lab::Section& section) {
    return std::holds_alternative<lab::Panels>(section);
  });
  console.out << lab::ReportText(report, {.color = console.out_is_terminal});
  return kExitOk;
}

OrFailure<ComparisonOutput> MakeAdvice(const CompareOptions& options, const Console& console) {
  if (!options.svg.empty()) return Refuse("--svg: an advice has no picture; leave out --advise");
  const OrFailure<Limit> limit =
      LimitOf(options, options.limit.empty() ? kLimitForAdvice : options.limit);
  if (!limit) return std::unexpected(limit.error());
  const OrFailure<lab::Wishes> wishes = Interview(options, console);
  if (!wishes) return std::unexpected(wishes.error());
  const Result<lab::Advice> advice = lab::Advise(*wishes, *limit);
  if (!advice) return Refuse(advice.error().message);
  return ComparisonOutput{.report = lab::ReportOf(*advice), .json = lab::JsonOf(*advice, *wishes)};
}

OrFailure<ComparisonOutput> MakeComparison(const CompareOptions& options, const Console& console) {
  const OrFailure<Limit> limit = LimitOf(options, options.limit);
  if (!limit) return std::unexpected(limit.error());
  OrFailure<lab::Traffic> traffic = TrafficOf(options, *limit, console.in);
  if (!traffic) return std::unexpected(traffic.error());
  lab::Progress progress(
      {.out = console.err_is_terminal ? &console.err : nullptr, .what = "requests"});
  const lab::Comparison comparison = lab::Compare(*limit, *std::move(traffic), &progress);
  return ComparisonOutput{.report = lab::ReportOf(comparison),
                          .json = lab::JsonOf(comparison),
                          .picture = lab::PictureOf(comparison)};
}

}  // namespace

int RunCompare(const CompareOptions& options, const Console& console) {
  const bool is_file = std::ranges::find(lab::kShapeNames, std::string_view(options.traffic)) ==
                       lab::kShapeNames.end();
  if (const Result<void> right =
          CheckOutputs({is_file ? options.traffic : ""}, {options.html, options.svg});
      !right) {
    console.err << "weir compare: " << right.error().message << '\n';
    return kExitUsage;
  }
  const OrFailure<ComparisonOutput> output =
      options.advise ? MakeAdvice(options, console) : MakeComparison(options, console);
  if (output) return Show(*output, options, console);
  console.err << "weir compare: " << output.error().message << '\n';
  return output.error().code;
}

}  // namespace weir
