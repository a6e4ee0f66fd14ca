#include "server/command_line.h"

#include <array>
#include <map>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>

#include "limit/limit_words.h"
#include "policy/spec_reader.h"
#include "server/check_config.h"
#include "server/embedded.h"
#include "server/explain_command.h"
#include "server/format_command.h"
#include "server/lab_command_line.h"
#include "server/schema_command.h"
#include "server/serve.h"
#include "server/serve_check.h"

namespace weir {
namespace {

constexpr std::array<std::string_view, 9> kCommands = {"calibrate", "check-config", "compare",
                                                       "explain",   "fmt",          "replay",
                                                       "schema",    "serve",        "simulate"};

// The commands, and what was said about each.
class CommandLine {
 public:
  CommandLine() {
    app_.set_help_flag("-h,--help", "Say how it is used");
    app_.set_version_flag("--version", "weir " + std::string(ProgramVersion()),
                          "Print the version");
    app_.require_subcommand(1);
    app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app_.get_formatter()->label("Subcommands", "Commands");
    app_.footer(
        "Ends with 0 if all is well, 1 if there are problems, 2 if it was called wrongly.\n"
        "weir COMMAND --help says more about a command.");
    AddCheckConfig();
    AddExplain();
    AddFormat();
    schema_ = app_.add_subcommand("schema", "Print the JSON Schema of policy files, for editors");
    AddServe();
    lab_.emplace(app_);
  }

  int Run(std::span<const char* const> words, const Console& console) {
    if (words.size() < 2) {
      console.err << app_.help();
      return kExitUsage;
    }
    try {
      app_.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& error) {
      return End(error, console);
    }
    if (check_config_->parsed()) return RunCheckConfig(check_config_options_, console);
    if (explain_->parsed()) return RunExplain(explain_options_, console);
    if (format_->parsed()) return RunFormat(format_options_, console);
    if (schema_->parsed()) return RunSchema(console);
    if (const std::optional<int> ended = lab_->Run(console)) return *ended;
    return serve_check_ ? RunServeCheck(serve_options_, console)
                        : RunServe(serve_options_, console);
  }

 private:
  void AddCheckConfig() {
    check_config_ =
        app_.add_subcommand("check-config", "Say everything that is wrong with a policy");
    check_config_
        ->add_option("FILE", check_config_options_.file, "The policy; - for standard input")
        ->required();
    check_config_->add_flag("--json", check_config_options_.json, "Print a JSON array");
    check_config_->add_flag("--strict", check_config_options_.strict,
                            "End with 1 on warnings, too");
  }

  void AddExplain() {
    explain_ = app_.add_subcommand("explain", "Say why a request would be allowed or denied");
    explain_->add_option("-c,--config", explain_options_.policy_file, "The policy")->required();
    explain_
        ->add_option("--request", explain_options_.request,
                     "The request as JSON; @FILE; or - for standard input")
        ->required();
    explain_->add_flag("--json", explain_options_.json, "Print JSON");
  }

  void AddFormat() {
    format_ = app_.add_subcommand("fmt", "Bring policies into one form, comments kept");
    format_->add_option("FILE", format_options_.files, "Policies; - from standard input to output")
        ->required();
    CLI::Option* const check = format_->add_flag(
        "--check", format_options_.check, "Change nothing; end with 1 if something would change");
    format_->add_flag("--stdout", format_options_.to_stdout, "Print the text; change nothing")
        ->excludes(check);
  }

  void AddServe() {
    serve_ = app_.add_subcommand("serve", "Run the service");
    serve_->add_option("-c,--config", serve_options_.policy_file, "The policy")->required();
    serve_
        ->add_option("--threads", serve_options_.threads,
                     "How many threads serve; one for each core if not given")
        ->check(CLI::Range(1, 1024));
    const std::map<std::string, Log::Format> formats = {{"text", Log::Format::kText},
                                                        {"json", Log::Format::kJson}};
    serve_->add_option("--log", serve_options_.log, "How the log is written: text or json")
        ->transform(CLI::CheckedTransformer(formats))
        ->option_text("FORMAT");
    serve_->add_flag("--check", serve_check_,
                     "Say whether it would start; open everything, serve nobody");
    serve_->add_flag("--force-reload", serve_options_.force_reload,
                     "Take changes of the policy that look like accidents");
  }

  // The library throws to ask for help, too.
  int End(const CLI::ParseError& error, const Console& console) const {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app_.exit(error, console.out, console.err);
      return kExitOk;
    }
    console.err << "weir: " << error.what() << "\nTry weir --help.\n";
    return kExitUsage;
  }

  CLI::App app_{"Weir, a rate limiter.", "weir"};
  std::optional<LabCommandLine> lab_;
  CLI::App* check_config_ = nullptr;
  CLI::App* explain_ = nullptr;
  CLI::App* format_ = nullptr;
  CLI::App* schema_ = nullptr;
  CLI::App* serve_ = nullptr;
  CheckConfigOptions check_config_options_;
  ExplainOptions explain_options_;
  FormatOptions format_options_;
  ServeOptions serve_options_;
  bool serve_check_ = false;
};

// What to say to a command that there is not.
std::optional<std::string> UnknownCommand(std::span<const char* const> words) {
  if (words.size() < 2) return std::nullopt;
  const std::string_view word = words[1];
  const bool known = word.starts_with('-') || std::ranges::find(kCommands, word) != kCommands.end();
  if (known) return std::nullopt;
  const auto meant = Nearest(word, kCommands);
  return "there is no command " + Quoted(word) +
         (meant ? "; did you mean " + std::string(*meant) + "?" : "");
}

}  // namespace

int RunCommandLine(std::span<const char* const> words, const Console& console) {
  if (const auto unknown = UnknownCommand(words)) {
    console.err << "weir: " << *unknown << "\nTry weir --help.\n";
    return kExitUsage;
  }
  const int result = CommandLine().Run(words, console);
  console.out.flush();
  if (console.out.good()) return result;
  console.err << "weir: the output cannot be written\n";
  return kExitProblems;
}

}  // namespace weir
