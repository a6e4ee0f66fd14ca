#include "lab/fleet/campaign.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace weir::lab {
namespace {

void AddTo(Verdict& all, const Verdict& one) {
  for (std::size_t i = 0; i < kInvariants; ++i) {
    Finding& sum = all.findings[i];
    const Finding& its = one.findings[i];
    sum.checked += its.checked;
    sum.broken += its.broken;
  }
}

std::vector<std::string> WhatBroke(const Outcome& outcome) {
  std::vector<std::string> what;
  for (const Finding& finding : outcome.verdict.findings) {
    for (const std::string& example : finding.examples) {
      what.push_back(std::string(finding.name) + " " + example);
    }
    if (finding.broken > finding.examples.size()) {
      what.push_back(std::string(finding.name) + " and " +
                     std::to_string(finding.broken - finding.examples.size()) + " more");
    }
  }
  for (const std::string& unmet : outcome.unmet) what.push_back("expected " + unmet);
  return what;
}

}  // namespace

Outcome RunSeed(const Scenario& scenario, std::uint64_t seed, sim::LuaEngine& lua,
                const FleetOptions& options) {
  Outcome outcome;
  {
    Fleet fleet(scenario, seed, lua, options);
    outcome.record = fleet.Run();
  }
  outcome.measures = MeasuresOf(scenario, outcome.record);
  outcome.verdict = Judge(outcome.record);
  outcome.unmet = UnmetExpectations(scenario, outcome.measures);
  return outcome;
}

CampaignResult RunCampaign(const Scenario& scenario, const CampaignOptions& options) {
  CampaignResult result;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> is_over = false;
  const auto work = [&] {
    sim::LuaEngine lua(options.lua);
    for (std::uint64_t i = next++; i < options.seeds && !is_over; i = next++) {
      const Outcome outcome = RunSeed(scenario, options.seed + i, lua, options.fleet);
      if (options.progress != nullptr) options.progress->Advance(1, 1);
      const std::scoped_lock lock(mutex);
      ++result.runs;
      result.requests += outcome.record.asked.size();
      result.events += outcome.record.events;
      result.simulated += outcome.record.ended;
      AddTo(result.verdict, outcome.verdict);
      if (outcome.is_clean()) {
        ++result.clean;
        continue;
      }
      result.broken.push_back({options.seed + i, WhatBroke(outcome)});
      is_over = options.stops_at_first;
    }
  };
  const auto cores = static_cast<std::uint64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::uint64_t wanted =
      options.threads > 0 ? static_cast<std::uint64_t>(options.threads) : cores;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 1; i < std::min(wanted, options.seeds); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::ranges::sort(result.broken, {}, &BrokenSeed::seed);
  return result;
}

}  // namespace weir::lab
