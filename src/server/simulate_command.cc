#include "server/simulate_command.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>

#include "lab/fleet/campaign.h"
#include "lab/fleet/fleet_report.h"
#include "lab/fleet/scenario_reader.h"
#include "lab/progress.h"
#include "lab/report.h"
#include "server/check_config.h"
#include "server/embedded.h"
#include "server/output_file.h"

namespace weir {
namespace {

using lab::CampaignResult;
using lab::Outcome;
using lab::Scenario;

// As a shell takes it for one word.
std::string ForShell(const std::string& text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::strchr("_-./+=:,@", c) != nullptr;
  };
  if (std::ranges::all_of(text, is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

class Simulation {
 public:
  Simulation(const SimulateOptions& options, const Console& console)
      : options_(options), console_(console) {}

  int Run() {
    std::vector<Scenario> scenarios;
    bool is_right = true;
    for (const std::string& file : options_.scenarios) {
      lab::ScenarioReport report = lab::LoadScenario(file);
      PrintProblems(report.problems, console_.err);
      is_right &= report.scenario.has_value();
      if (report.scenario) scenarios.push_back(*std::move(report.scenario));
    }
    if (!is_right) return kExitProblems;
    lab::JsonReports all;
    for (const Scenario& scenario : scenarios) {
      if (!options_.json && &scenario != &scenarios.front()) console_.out << '\n';
      if (options_.seeds > 1) {
        RunMany(scenario, all);
      } else {
        RunOne(scenario, all);
      }
    }
    if (options_.json) console_.out << all.Text() << '\n';
    return is_clean_ ? kExitOk : kExitProblems;
  }

 private:
  std::string Command(const Scenario& scenario, std::uint64_t seed) const {
    return "weir simulate " + ForShell(scenario.file) + " --seed " + std::to_string(seed);
  }
  std::string Build() const {
    std::string build = "weir " + std::string(ProgramVersion());
    if (!ProgramCommit().empty()) build += ", commit " + std::string(ProgramCommit());
    return build;
  }

  void RunOne(const Scenario& scenario, lab::JsonReports& all) {
    const Outcome outcome = RunWatched(scenario);
    is_clean_ &= outcome.is_clean();
    const lab::ReportContext context{.command = Command(scenario, options_.seed), .build = Build()};
    const lab::Report report = lab::FleetReport(scenario, outcome, context);
    if (options_.json) {
      all.Add(scenario, outcome, context);
    } else {
      console_.out << lab::ReportText(report, {.color = console_.out_is_terminal});
    }
    Write(options_.html, [&] { return lab::ReportPage(report); });
    Write(options_.svg, [&] { return lab::PanelsSvg(lab::FleetPicture(scenario, outcome)); });
  }

  Outcome RunWatched(const Scenario& scenario) const {
    lab::Progress progress({.out = console_.err_is_terminal ? &console_.err : nullptr,
                            .what = "requests",
                            .clock = options_.clock});
    sim::LuaEngine lua;
    return lab::RunSeed(scenario, options_.seed, lua, {.progress = &progress});
  }

  void RunMany(const Scenario& scenario, lab::JsonReports& all) {
    CampaignResult result;
    {
      lab::Progress progress({.out = console_.err_is_terminal ? &console_.err : nullptr,
                              .what = "seeds",
                              .clock = options_.clock});
      progress.SetTotal(options_.seeds);
      result = lab::RunCampaign(scenario, {.seed = options_.seed,
                                           .seeds = options_.seeds,
                                           .threads = options_.threads,
                                           .progress = &progress});
    }
    is_clean_ &= result.broken.empty();
    if (options_.json) {
      all.Add(scenario, result, options_.seed, Build());
      return;
    }
    for (const lab::BrokenSeed& broken : result.broken) {
      console_.out << "BROKEN " << scenario.name << ", seed " << broken.seed << ", " << Build()
                   << ": " << Command(scenario, broken.seed) << '\n';
      for (const std::string& what : broken.what) console_.out << "  " << what << '\n';
    }
    console_.out << lab::ReportText(lab::CampaignReport(scenario, result, options_.seed, Build()),
                                    {.color = console_.out_is_terminal});
  }

  template <typename Make>
  void Write(const std::string& path, const Make& make) {
    if (path.empty()) return;
    if (const Result<void> written = WriteOutputFile(path, make()); !written) {
      console_.err << "weir simulate: " << written.error().message << '\n';
      is_clean_ = false;
    }
  }

  const SimulateOptions& options_;
  const Console& console_;
  bool is_clean_ = true;
};

}  // namespace

int RunSimulate(const SimulateOptions& options, const Console& console) {
  const bool draws = !options.html.empty() || !options.svg.empty();
  if (draws && (options.scenarios.size() > 1 || options.seeds > 1)) {
    console.err << "weir simulate: --html and --svg show one run: give one scenario, and no "
                   "--seeds\n";
    return kExitUsage;
  }
  return Simulation(options, console).Run();
}

}  // namespace weir
