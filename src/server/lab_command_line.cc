#include "server/lab_command_line.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "server/calibrate_command.h"
#include "server/compare_command.h"
#include "server/replay_command.h"
#include "server/simulate_command.h"

namespace weir {
namespace {

// The whole text as a number. What is too large for it, or below 0, is none: CLI11 alone would take
// another number in its place.
template <typename T>
std::optional<T> NumberIn(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

// CLI11's own says which numbers it takes in three hundred digits.
CLI::Validator WholeNumber(std::uint64_t least, std::uint64_t most) {
  return {[=](std::string& text) {
            const auto value = NumberIn<std::uint64_t>(text);
            if (value && *value >= least && *value <= most) return std::string();
            return text + " is not allowed; write a whole number from " + std::to_string(least) +
                   " to " + std::to_string(most);
          },
          ""};
}

CLI::Validator Multiple() {
  return {[](std::string& text) {
            const auto value = NumberIn<double>(text);
            if (value && std::isfinite(*value) && *value > 0) return std::string();
            return text + " is not allowed; write a number above 0, such as 0.5 or 20";
          },
          ""};
}

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
// No limit has a larger burst.
constexpr std::uint64_t kLargestBurst = 1'000'000'000'000'000;
// Some two years of one core.
constexpr std::uint64_t kMostSeeds = 1'000'000'000;

void AddOutputs(CLI::App& command, std::string& html, bool& json) {
  command.add_option("--html", html, "Write a page that any browser shows")->option_text("FILE");
  command.add_flag("--json", json, "Print JSON");
}

void AddLogOptions(CLI::App& command, LogOptions& logs) {
  command.add_option("LOG", logs.files, "Access logs, also compressed; - for standard input")
      ->required();
  command
      .add_option("--format", logs.format,
                  "auto, combined (nginx, Apache), envoy, alb, caddy, csv or jsonl")
      ->check(CLI::IsMember({"auto", "combined", "envoy", "alb", "caddy", "csv", "jsonl"}))
      ->option_text("FORMAT");
  command
      .add_option("--column", logs.columns,
                  "Which column of the log says what: time=ts, user=account_id")
      ->option_text("NAME=COLUMN")
      ->allow_extra_args(false);
  command
      .add_option("--horizon", logs.horizon,
                  "How much later than its time a line may come; what is later is left out")
      ->option_text("TIME");
  command
      .add_option("--max-bad", logs.max_bad,
                  "End with 1 if more of the lines than this had to be left out")
      ->option_text("PERCENT");
  command.add_option("--threads", logs.threads, "How many threads work; one for each core")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
}

CLI::App* AddCompare(CLI::App& app, CompareOptions& options) {
  CLI::App* const compare =
      app.add_subcommand("compare", "Show what a limit means, by every algorithm");
  compare->add_option("LIMIT", options.limit, "100/s, or 100/min burst 50");
  compare->add_option("--burst", options.burst, "What buckets let through at once")
      ->check(WholeNumber(1, kLargestBurst))
      ->option_text("N");
  compare
      ->add_option(
          "--traffic", options.traffic,
          "steady, poisson, burst, boundary, late-window, diurnal, or a file with a time in "
          "seconds on every line")
      ->option_text("NAME|FILE");
  compare->add_option("--load", options.load, "How much comes, as a multiple of the limit")
      ->check(Multiple())
      ->option_text("X");
  compare->add_option("--duration", options.duration, "How long it comes: 60s")
      ->option_text("TIME");
  compare->add_option("--seed", options.seed, "Other random arrivals")
      ->check(WholeNumber(0, kLargest))
      ->option_text("N");
  CLI::Option* const advise =
      compare->add_flag("--advise", options.advise, "Ask a few questions, and say which to take");
  compare
      ->add_option("--answer", options.answers,
                   "What --advise need not ask: bursts, strict, smooth, memory, resets; yes or no")
      ->option_text("QUESTION=ANSWER")
      ->allow_extra_args(false)
      ->needs(advise);
  compare->add_option("--svg", options.svg, "Write a picture for documents")->option_text("FILE");
  AddOutputs(*compare, options.html, options.json);
  return compare;
}

CLI::App* AddCalibrate(CLI::App& app, CalibrateOptions& options) {
  CLI::App* const calibrate =
      app.add_subcommand("calibrate", "Learn from access logs which limits would fit");
  AddLogOptions(*calibrate, options.logs);
  calibrate
      ->add_option("--key", options.key,
                   "Who is counted: ip, user, a column of the log, or several: ip+path")
      ->option_text("KEY");
  calibrate
      ->add_option("--quantile", options.quantile,
                   "Of all clients, this part shall never be denied, in percent")
      ->check(CLI::Range(50.0, 100.0))
      ->option_text("PERCENT");
  calibrate->add_option("--margin", options.margin, "How much more than that a limit allows")
      ->check(CLI::Range(1.0, 100.0))
      ->option_text("X");
  calibrate->add_option("--policy", options.policy, "Write a policy in shadow mode; - prints it")
      ->option_text("FILE");
  AddOutputs(*calibrate, options.html, options.json);
  return calibrate;
}

CLI::App* AddReplay(CLI::App& app, ReplayOptions& options) {
  CLI::App* const replay =
      app.add_subcommand("replay", "Run access logs through a policy, in virtual time");
  AddLogOptions(*replay, options.logs);
  replay->add_option("-c,--config", options.policy_file, "The policy")
      ->required()
      ->option_text("FILE");
  replay
      ->add_option("--against", options.against,
                   "Another policy: say who would newly be denied or allowed under it")
      ->option_text("FILE");
  replay
      ->add_option("--decisions", options.decisions,
                   "Write one line of JSON for each request, in the order of the log")
      ->option_text("FILE");
  replay
      ->add_option("--fail-if-denied", options.fail_if_denied,
                   "End with 1 if more of the requests than this were denied")
      ->option_text("PERCENT");
  replay->add_option("--top", options.top, "How many of those denied most are named")
      ->check(CLI::Range(0, 1000))
      ->option_text("N");
  replay->add_flag("--spread", options.spread,
                   "Spread requests of the same second over it, if the log has whole seconds");
  AddOutputs(*replay, options.html, options.json);
  return replay;
}

CLI::App* AddSimulate(CLI::App& app, SimulateOptions& options) {
  CLI::App* const simulate =
      app.add_subcommand("simulate", "Run a fleet in a simulated world, and judge what it did");
  simulate->add_option("SCENARIO", options.scenarios, "Scenarios, in YAML")->required();
  simulate->add_option("--seed", options.seed, "Another course of events")
      ->check(WholeNumber(0, kLargest))
      ->option_text("N");
  simulate->add_option("--seeds", options.seeds, "So many courses of events")
      ->check(WholeNumber(1, kMostSeeds))
      ->option_text("N");
  simulate->add_option("--threads", options.threads, "How many threads work; one for each core")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  simulate->add_option("--svg", options.svg, "Write a picture for documents")->option_text("FILE");
  AddOutputs(*simulate, options.html, options.json);
  return simulate;
}

}  // namespace

struct LabCommandLine::Commands {
  explicit Commands(CLI::App& app)
      : compare(AddCompare(app, compare_options)),
        calibrate(AddCalibrate(app, calibrate_options)),
        replay(AddReplay(app, replay_options)),
        simulate(AddSimulate(app, simulate_options)) {}

  CompareOptions compare_options;
  CalibrateOptions calibrate_options;
  ReplayOptions replay_options;
  SimulateOptions simulate_options;
  CLI::App* compare;
  CLI::App* calibrate;
  CLI::App* replay;
  CLI::App* simulate;
};

LabCommandLine::LabCommandLine(CLI::App& app) : commands_(std::make_unique<Commands>(app)) {}

LabCommandLine::~LabCommandLine() = default;

std::optional<int> LabCommandLine::Run(const Console& console) const {
  const Commands& commands = *commands_;
  if (commands.compare->parsed()) return RunCompare(commands.compare_options, console);
  if (commands.calibrate->parsed()) return RunCalibrate(commands.calibrate_options, console);
  if (commands.replay->parsed()) return RunReplay(commands.replay_options, console);
  if (commands.simulate->parsed()) return RunSimulate(commands.simulate_options, console);
  return std::nullopt;
}

}  // namespace weir
