#include "lab/fleet/scenario_reader.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "lab/fleet/scenario_check.h"
#include "lab/fleet/value_reader.h"
#include "policy/file_text.h"
#include "policy/policy_compiler.h"
#include "policy/policy_reader.h"

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array<Word<StoreLayout>, 6> kLayouts = {{
    {"memory", StoreLayout::kMemory},
    {"redis", StoreLayout::kRedis},
    {"shards", StoreLayout::kShards},
    {"cluster", StoreLayout::kCluster},
    {"sentinel", StoreLayout::kSentinel},
    {"any", StoreLayout::kAny},
}};
constexpr std::array<Word<Arrivals>, 3> kArrivals = {{
    {"steady", Arrivals::kSteady},
    {"poisson", Arrivals::kPoisson},
    {"bursts", Arrivals::kBursts},
}};
constexpr std::array<Word<bool>, 2> kStickiness = {{{"any", false}, {"sticky", true}}};
constexpr std::array<Word<NodeFault>, 5> kNodeFaults = {{
    {"node pause", NodeFault::kPause},
    {"node restart", NodeFault::kRestart},
    {"node clock back", NodeFault::kClockBack},
    {"node clock ahead", NodeFault::kClockAhead},
    {"policy reload", NodeFault::kReload},
}};
constexpr std::array<Word<Measure>, 9> kMeasures = {{
    {"requests", Measure::kRequests},
    {"admitted", Measure::kAdmitted},
    {"denied", Measure::kDenied},
    {"by_store", Measure::kByStore},
    {"by_fallback", Measure::kByFallback},
    {"by_open", Measure::kByOpen},
    {"by_closed", Measure::kByClosed},
    {"degraded", Measure::kDegraded},
    {"latency", Measure::kLatency},
}};

constexpr Range<Duration> kTimeRange{Duration(0), kLongestRun};
constexpr Range<Duration> kLatencyRange{Duration(0), seconds(10)};
constexpr Range<Duration> kOffsetRange{Duration(0), std::chrono::hours(24 * 366)};
constexpr Range<int> kServerRange{1, 16};

constexpr std::array<Field<StoreSpec>, 7> kStoreFields = {{
    {"layout", [](SpecReader& reader, const Spot& spot,
                  StoreSpec& store) { reader.ReadWord(spot, kLayouts, store.layout); }},
    {"servers",
     [](SpecReader& reader, const Spot& spot, StoreSpec& store) {
       ReadNumbers(reader, spot, store.servers.emplace(Between<int>::Only(1)), kServerRange);
     }},
    {"latency", [](SpecReader& reader, const Spot& spot,
                   StoreSpec& store) { ReadLengths(reader, spot, store.latency, kLatencyRange); }},
    {"timeout", [](SpecReader& reader, const Spot& spot,
                   StoreSpec& store) { ReadLengths(reader, spot, store.timeout, kTimeoutRange); }},
    {"connections",
     [](SpecReader& reader, const Spot& spot, StoreSpec& store) {
       ReadNumbers(reader, spot, store.connections, kConnectionRange);
     }},
    {"max_in_flight",
     [](SpecReader& reader, const Spot& spot, StoreSpec& store) {
       ReadNumbers(reader, spot, store.max_in_flight, kInFlightRange);
     }},
    {"clock_offset",
     [](SpecReader& reader, const Spot& spot, StoreSpec& store) {
       reader.ReadLength(spot, store.clock_offset, kOffsetRange);
     }},
}};

constexpr std::array<Field<NodesSpec>, 4> kNodesFields = {{
    {"count", [](SpecReader& reader, const Spot& spot,
                 NodesSpec& nodes) { ReadNumbers(reader, spot, nodes.count, {1, kMostNodes}); }},
    {"fleet_size",
     [](SpecReader& reader, const Spot& spot, NodesSpec& nodes) {
       reader.ReadInt(spot, nodes.fleet_size.emplace(0), {0, kFleetRange.most});
     }},
    {"clock_offset",
     [](SpecReader& reader, const Spot& spot, NodesSpec& nodes) {
       reader.ReadLength(spot, nodes.clock_offset, kOffsetRange);
     }},
    {"clock_drift", [](SpecReader& reader, const Spot& spot,
                       NodesSpec& nodes) { ReadDrift(reader, spot, nodes.clock_drift_ppm); }},
}};

template <std::size_t which>
void ReadAttribute(SpecReader& reader, const Spot& spot, ClientSpec& client) {
  constexpr std::array<const char*, 8> kNames = {"ip",   "user",   "api_key", "org",
                                                 "tier", "method", "path",    "host"};
  reader.ReadText(spot, client.attributes[kNames[which]]);
}

void ReadHeaders(SpecReader& reader, const Spot& spot, ClientSpec& client) {
  if (!reader.IsMap(spot)) return;
  for (const YamlNode::Entry& entry : spot.node.entries) {
    const Where where(spot.where, entry.key);
    reader.ReadText({entry.value, where}, client.headers.emplace_back(entry.key, "").second);
  }
}

constexpr std::array<Field<ClientSpec>, 19> kClientFields = {{
    {"name", [](SpecReader& reader, const Spot& spot,
                ClientSpec& client) { reader.ReadText(spot, client.name); }},
    {"count",
     [](SpecReader& reader, const Spot& spot, ClientSpec& client) {
       ReadNumbers(reader, spot, client.count, {1, kMostClients});
     }},
    {"rate", [](SpecReader& reader, const Spot& spot,
                ClientSpec& client) { ReadRates(reader, spot, client.rate); }},
    {"arrivals", [](SpecReader& reader, const Spot& spot,
                    ClientSpec& client) { reader.ReadWord(spot, kArrivals, client.arrivals); }},
    {"burst", [](SpecReader& reader, const Spot& spot,
                 ClientSpec& client) { ReadNumbers(reader, spot, client.burst, {1, 100'000}); }},
    {"ip", ReadAttribute<0>},
    {"user", ReadAttribute<1>},
    {"api_key", ReadAttribute<2>},
    {"org", ReadAttribute<3>},
    {"tier", ReadAttribute<4>},
    {"method", ReadAttribute<5>},
    {"path", ReadAttribute<6>},
    {"host", ReadAttribute<7>},
    {"headers", ReadHeaders},
    {"cost", [](SpecReader& reader, const Spot& spot,
                ClientSpec& client) { ReadCosts(reader, spot, client.cost); }},
    {"node", [](SpecReader& reader, const Spot& spot,
                ClientSpec& client) { reader.ReadWord(spot, kStickiness, client.is_sticky); }},
    {"from", [](SpecReader& reader, const Spot& spot,
                ClientSpec& client) { ReadLengths(reader, spot, client.from, kTimeRange); }},
    {"until",
     [](SpecReader& reader, const Spot& spot, ClientSpec& client) {
       ReadLengths(reader, spot, client.until.emplace(), kTimeRange);
     }},
    {"hold",
     [](SpecReader& reader, const Spot& spot, ClientSpec& client) {
       ReadLengths(reader, spot, client.hold.emplace(), kTimeRange);
     }},
}};

// A fault and what has to be looked at once all else is known.
struct FaultDraft {
  FaultSpec spec{};
  const YamlNode* policy = nullptr;
};

void ReadWhat(SpecReader& reader, const Spot& spot, FaultDraft& draft) {
  if (!reader.ReadText(spot, draft.spec.what)) return;
  const std::string& what = draft.spec.what;
  if (const std::optional<NodeFault> found = MeaningOf(what, kNodeFaults)) {
    draft.spec.node_fault = found;
    return;
  }
  std::vector<std::string_view> allowed;
  allowed.reserve(std::size(kNodeFaults));
  for (const Word<NodeFault>& word : kNodeFaults) allowed.push_back(word.text);
  for (const sim::FaultTraits& traits : sim::AllFaults()) {
    if (traits.name == what) draft.spec.server_fault = traits.kind;
    allowed.push_back(traits.name);
  }
  if (draft.spec.server_fault) return;
  if (const auto meant = Nearest(what, allowed)) {
    reader.Report(ProblemCode::kUnknownWord, spot.where,
                  "unknown fault " + Quoted(what) + "; did you mean " + std::string(*meant) + "?");
  } else {
    reader.UnknownWord(spot.where, what, allowed);
  }
}

// Counted from 1 by people.
void ReadOrdinal(SpecReader& reader, const Spot& spot, std::optional<int>& number, int most) {
  int read = 1;
  reader.ReadInt(spot, read, {1, most});
  number = read - 1;
}

constexpr std::array<Field<FaultDraft>, 8> kFaultFields = {{
    {"random",
     [](SpecReader& reader, const Spot& spot, FaultDraft& draft) {
       ReadNumbers(reader, spot, draft.spec.random.emplace(), {0, 100});
     }},
    {"what", ReadWhat},
    {"at", [](SpecReader& reader, const Spot& spot,
              FaultDraft& draft) { ReadLengths(reader, spot, draft.spec.at, kTimeRange); }},
    {"for",
     [](SpecReader& reader, const Spot& spot, FaultDraft& draft) {
       draft.spec.says_for = true;
       ReadLengths(reader, spot, draft.spec.lasts, {milliseconds(1), kLongestRun});
     }},
    {"server",
     [](SpecReader& reader, const Spot& spot, FaultDraft& draft) {
       ReadOrdinal(reader, spot, draft.spec.server, kServerRange.most);
     }},
    {"node", [](SpecReader& reader, const Spot& spot,
                FaultDraft& draft) { ReadOrdinal(reader, spot, draft.spec.node, kMostNodes); }},
    {"by",
     [](SpecReader& reader, const Spot& spot, FaultDraft& draft) {
       ReadLengths(reader, spot, draft.spec.by.emplace(), kOffsetRange);
     }},
    {"policy", [](SpecReader&, const Spot& spot, FaultDraft& draft) { draft.policy = &spot.node; }},
}};

// "at most 1%", "at least 500", "at most 2s".
void ReadExpectation(SpecReader& reader, const Spot& spot, Measure measure,
                     std::vector<Expectation>& expect) {
  Expectation it{.measure = measure};
  if (!reader.ReadText(spot, it.text)) return;
  constexpr std::string_view kAtMost = "at most ";
  constexpr std::string_view kAtLeast = "at least ";
  it.is_at_most = it.text.starts_with(kAtMost);
  std::string_view rest = it.text;
  std::optional<double> value;
  if (it.is_at_most || it.text.starts_with(kAtLeast)) {
    rest.remove_prefix(it.is_at_most ? kAtMost.size() : kAtLeast.size());
    if (measure == Measure::kDegraded || measure == Measure::kLatency) {
      const std::optional<Duration> length = rest == "0s" ? Duration(0) : ParseLength(rest);
      if (length) value = std::chrono::duration<double>(*length).count();
    } else if (rest.ends_with('%')) {
      rest.remove_suffix(1);
      it.is_share = true;
      value = ParseNumber(rest);
      if (value && *value > 100) value.reset();
      if (value) *value /= 100;
    } else {
      value = ParseNumber(rest);
    }
  }
  if (!value) {
    return reader.Report(
        ProblemCode::kNotANumber, spot.where,
        Quoted(it.text) +
            " is nothing to expect; write at most or at least, and a number, a "
            "percentage of up to 100%, or for degraded and latency a time: at most 1%");
  }
  it.value = *value;
  expect.push_back(std::move(it));
}

void ReadExpect(SpecReader& reader, const Spot& spot, std::vector<Expectation>& expect) {
  if (!reader.IsMap(spot)) return;
  std::vector<std::string_view> allowed;
  allowed.reserve(std::size(kMeasures));
  for (const Word<Measure>& word : kMeasures) allowed.push_back(word.text);
  for (const YamlNode::Entry& entry : spot.node.entries) {
    const Where where(spot.where, entry.key);
    const std::optional<Measure> measure = MeaningOf(entry.key, kMeasures);
    if (!measure) {
      reader.UnknownKey(where, entry.key, allowed);
    } else {
      reader.ReadEach({entry.value, where},
                      [&](const Spot& item) { ReadExpectation(reader, item, *measure, expect); });
    }
  }
}

struct Draft {
  Scenario scenario{};
  std::vector<FaultDraft> faults{};
  const YamlNode* policy = nullptr;
  std::string policy_file{};
  YamlPlace policy_file_place{};
};

constexpr std::array<Field<Draft>, 10> kScenarioFields = {{
    {"name", [](SpecReader& reader, const Spot& spot,
                Draft& draft) { reader.ReadText(spot, draft.scenario.name); }},
    {"description", [](SpecReader& reader, const Spot& spot,
                       Draft& draft) { reader.ReadText(spot, draft.scenario.description); }},
    {"duration",
     [](SpecReader& reader, const Spot& spot, Draft& draft) {
       ReadLengths(reader, spot, draft.scenario.duration, {milliseconds(100), kLongestRun});
     }},
    {"policy", [](SpecReader&, const Spot& spot, Draft& draft) { draft.policy = &spot.node; }},
    {"policy_file",
     [](SpecReader& reader, const Spot& spot, Draft& draft) {
       reader.ReadText(spot, draft.policy_file);
       draft.policy_file_place = spot.node.place;
     }},
    {"store", [](SpecReader& reader, const Spot& spot,
                 Draft& draft) { reader.ReadMap(spot, kStoreFields, draft.scenario.store); }},
    {"nodes", [](SpecReader& reader, const Spot& spot,
                 Draft& draft) { reader.ReadMap(spot, kNodesFields, draft.scenario.nodes); }},
    {"clients",
     [](SpecReader& reader, const Spot& spot, Draft& draft) {
       reader.ReadEach(spot, [&](const Spot& item) {
         reader.ReadMap(item, kClientFields, draft.scenario.clients.emplace_back());
       });
     }},
    {"faults",
     [](SpecReader& reader, const Spot& spot, Draft& draft) {
       if (spot.node.kind == YamlNode::Kind::kNull) return;
       reader.ReadEach(spot, [&](const Spot& item) {
         FaultDraft& fault = draft.faults.emplace_back();
         fault.spec.place = item.node.place;
         reader.ReadMap(item, kFaultFields, fault);
       });
     }},
    {"expect", [](SpecReader& reader, const Spot& spot,
                  Draft& draft) { ReadExpect(reader, spot, draft.scenario.expect); }},
}};

class Reading {
 public:
  Reading(std::string file, std::string folder)
      : file_(std::move(file)), folder_(std::move(folder)), problems_(file_) {}

  ScenarioReport Read(std::string_view text) {
    YamlReport yaml = ReadYaml(text);
    for (const YamlProblem& problem : yaml.problems) {
      problems_.AddAt(CodeFor(problem.kind), file_, problem.place, "", problem.message);
    }
    ScenarioReport report;
    if (yaml.root) report.scenario = ReadTree(*yaml.root);
    report.problems = problems_.Take();
    report.problems.insert(report.problems.end(), of_policies_.begin(), of_policies_.end());
    if (!report.problems.empty()) report.scenario.reset();
    return report;
  }

 private:
  std::optional<Scenario> ReadTree(const YamlNode& root) {
    problems_.SetTree(&root);
    SpecReader reader(problems_);
    const Where top;
    Draft draft;
    draft.scenario.file = file_;
    draft.scenario.name = std::filesystem::path(file_).stem().string();
    reader.ReadMap({root, top}, kScenarioFields, draft);
    if (root.kind != YamlNode::Kind::kMap) return std::nullopt;
    is_shared_ = draft.scenario.store.layout != StoreLayout::kMemory;
    FindPolicy(draft);
    for (FaultDraft& fault : draft.faults) {
      if (fault.policy != nullptr) fault.spec.policy = ReadInline(*fault.policy);
      draft.scenario.faults.push_back(std::move(fault.spec));
    }
    if (!problems_.has_errors()) CheckScenario(draft.scenario, problems_);
    return std::move(draft.scenario);
  }

  void FindPolicy(Draft& draft) {
    if (draft.policy != nullptr && !draft.policy_file.empty()) {
      return Say(ProblemCode::kOutOfRange, draft.policy_file_place,
                 "the policy stands here already; keep policy or policy_file");
    }
    if (draft.policy != nullptr) {
      if (draft.policy->kind == YamlNode::Kind::kScalar && draft.policy->text == "any") return;
      draft.scenario.policy = ReadInline(*draft.policy);
    } else if (!draft.policy_file.empty()) {
      draft.scenario.policy = ReadFile(draft.policy_file);
    } else {
      Say(ProblemCode::kMissing, {.line = 1, .column = 1},
          "there is no policy; write policy: with rules, or any, or policy_file:");
    }
  }

  // Its problems have places of their own, because its tree begins elsewhere.
  std::optional<PolicySpec> ReadInline(const YamlNode& node) {
    ProblemList own(file_);
    own.SetTree(&node);
    PolicySpec spec = ReadPolicy(node, own);
    for (const char* const key : {"store", "listen", "redis", "fleet_size"}) {
      const Where top;
      if (node.Find(key) == nullptr) continue;
      own.Add(ProblemCode::kUnknownKey, Where(top, key),
              std::string(key) + " has no place here: the scenario says how nodes and store are",
              Where::Point::kKey);
    }
    return Compile(std::move(spec), folder_, own);
  }

  std::optional<PolicySpec> ReadFile(const std::string& name) {
    const std::string path = PathIn(folder_, name);
    PolicyReport report = Policy::Load(path);
    KeepErrors(std::move(report.problems));
    if (!report.policy) return std::nullopt;
    PolicySpec spec = report.policy->spec();
    spec.redis = {};
    ProblemList own(path);
    return Compile(std::move(spec), std::filesystem::path(path).parent_path().string(), own);
  }

  // Whoever makes a policy of it later knows no folder.
  static void NameFilesIn(const std::string& folder, PolicySpec& spec) {
    for (RuleSpec& rule : spec.rules) {
      for (std::string& file : rule.override_files) file = PathIn(folder, file);
    }
    constexpr std::string_view kFile = "file:";
    if (!spec.hash_secret.starts_with(kFile)) return;
    spec.hash_secret = std::string(kFile) + PathIn(folder, spec.hash_secret.substr(kFile.size()));
  }

  // As the nodes will have it.
  std::optional<PolicySpec> Compile(PolicySpec spec, const std::string& folder, ProblemList& own) {
    spec.store = {is_shared_ ? "redis://10.0.0.1:6379" : "memory"};
    spec.listen.clear();
    const bool is_right = CompilePolicy(spec, folder, own) != nullptr;
    KeepErrors(own.Take());
    if (!is_right) return std::nullopt;
    NameFilesIn(folder, spec);
    return spec;
  }

  void KeepErrors(std::vector<Problem> problems) {
    for (Problem& problem : problems) {
      if (problem.severity == Severity::kError) of_policies_.push_back(std::move(problem));
    }
  }
  void Say(ProblemCode code, YamlPlace place, std::string message) {
    problems_.AddAt(code, file_, place, "", std::move(message));
  }

  const std::string file_;
  const std::string folder_;
  ProblemList problems_;
  std::vector<Problem> of_policies_;
  bool is_shared_ = true;
};

}  // namespace

std::string_view NameOf(StoreLayout layout) { return WordFor(layout, kLayouts); }
std::string_view NameOf(NodeFault fault) { return WordFor(fault, kNodeFaults); }
std::string_view NameOf(Measure measure) { return WordFor(measure, kMeasures); }

ScenarioReport LoadScenario(const std::string& path) {
  const Result<std::string> text = ReadWholeFile(path, kMaxYamlBytes);
  if (text) {
    return ReadScenario(*text, path, std::filesystem::path(path).parent_path().string());
  }
  std::string why = text.error().message;
  if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
  Problem problem{.code = NameOf(ProblemCode::kUnreadable),
                  .file = path,
                  .line = 0,
                  .column = 0,
                  .where = "",
                  .message = std::move(why)};
  return {.scenario = std::nullopt, .problems = {std::move(problem)}};
}

ScenarioReport ReadScenario(std::string_view text, const std::string& file,
                            const std::string& folder) {
  return Reading(file, folder).Read(text);
}

}  // namespace weir::lab
