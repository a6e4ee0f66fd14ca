#include "server/explain_command.h"

#include <algorithm>

#include <weir/engine.h>
#include <weir/identity.h>

#include "limit/limit_words.h"
#include "policy/file_text.h"
#include "server/check_config.h"
#include "server/explain_report.h"
#include "server/policy_in_memory.h"
#include "server/request_text.h"

namespace weir {
namespace {

constexpr std::size_t kMaxRequestBytes = std::size_t{16} << 20;

Result<std::string> RequestOf(const ExplainOptions& options, std::istream& in) {
  if (options.request == kStandardInput) return ReadAll(in, kMaxRequestBytes);
  if (options.request.starts_with('@')) {
    return ReadWholeFile(options.request.substr(1), kMaxRequestBytes);
  }
  return options.request;
}

std::string UnknownRule(const RequestText& request, const PolicySpec& policy) {
  for (const std::string& name : request.rules) {
    if (std::ranges::find(policy.rules, name, &RuleSpec::name) == policy.rules.end()) {
      return "the request has a wrong field: rules: there is no rule " + Quoted(name);
    }
  }
  return "";
}

// What each rule says after the request has been counted, which is what a client would be told.
void CountIt(Engine& engine, const Request& request, const Ask& ask, Explanation& explanation) {
  std::vector<RuleDecision> each(explanation.rules.size());
  const Answer answer = engine.Check(request, ask, each);
  explanation.decision = answer.decision;
  std::size_t next = 0;
  for (RuleExplanation& rule : explanation.rules) {
    if (rule.matches && next < answer.rules) rule.decision = each[next++].decision;
  }
}

int Explain(const Policy& policy, const RequestText& text, bool as_json, const Console& console) {
  Result<Engine> engine = Engine::Make(policy);
  const Result<Identity> identity = Identity::Make(policy.spec());
  if (!engine || !identity) {
    console.err << (engine ? identity.error() : engine.error()).message << '\n';
    return kExitProblems;
  }
  const RequestViews views(text);
  IdentityStorage storage;
  Request request = text.peer ? identity->Identify(views.AsIncoming(), storage) : views.AsRequest();
  request.rules = views.rules();
  const Ask ask{.cost = text.cost};
  Explanation explanation = engine->Explain(request, ask);
  CountIt(*engine, request, ask, explanation);
  const ExplainedRequest explained{
      .policy = policy.spec(), .request = request, .peer = text.peer, .explanation = explanation};
  console.out << (as_json ? ExplanationJson(explained) : ExplanationText(explained));
  return kExitOk;
}

}  // namespace

int RunExplain(const ExplainOptions& options, const Console& console) {
  if (options.policy_file == kStandardInput && options.request == kStandardInput) {
    console.err << "the policy and the request cannot both come from standard input\n";
    return kExitUsage;
  }
  const Result<std::string> written = RequestOf(options, console.in);
  const Result<RequestText> request =
      written ? ParseRequestText(*written) : std::unexpected(written.error());
  if (!request) {
    console.err << request.error().message << '\n';
    return kExitUsage;
  }
  const PolicyReport report = LoadPolicy(options.policy_file, console.in);
  if (!report.policy) {
    PrintProblems(report.problems, console.err);
    return kExitProblems;
  }
  if (const std::string wrong = UnknownRule(*request, report.policy->spec()); !wrong.empty()) {
    console.err << wrong << '\n';
    return kExitUsage;
  }
  // Nothing is counted here, so whatever store the policy names, memory does.
  return Explain(InMemory(*report.policy, options.policy_file), *request, options.json, console);
}

}  // namespace weir
