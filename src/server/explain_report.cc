#include "server/explain_report.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "limit/limit_words.h"
#include "server/json_text.h"
#include "server/secrets.h"

namespace weir {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

const RuleSpec* FindRule(const PolicySpec& policy, std::string_view name) {
  const auto found = std::ranges::find(policy.rules, name, &RuleSpec::name);
  return found == policy.rules.end() ? nullptr : &*found;
}

// Who is asking, by attribute.
std::array<std::pair<std::string_view, std::string_view>, 5> Identified(const Request& request) {
  return {{{"ip", request.ip},
           {"user", request.user},
           {"api_key", request.api_key},
           {"org", request.org},
           {"tier", request.tier}}};
}

// How the rule counts, unless its limit says so itself.
std::string AlgorithmOf(const PolicySpec& policy, const RuleExplanation& rule) {
  const RuleSpec* const spec = FindRule(policy, rule.rule);
  if (spec == nullptr || !rule.limit.contains('/')) return "";
  return std::string(WordFor(spec->algorithm, kAlgorithms));
}

// --- Text ---

class TextReport {
 public:
  explicit TextReport(const ExplainedRequest& explained)
      : explained_(explained), secrets_(explained.policy) {}

  std::string Write() {
    Headline();
    if (explained_.peer) Peer(*explained_.peer);
    if (!explained_.explanation.tier.empty())
      text_ += "tier: " + explained_.explanation.tier + "\n";
    for (const RuleExplanation& rule : explained_.explanation.rules) Rule(rule);
    text_ +=
        "\nAs if this were the first request: what a running service has counted is not known "
        "here.\n";
    return std::move(text_);
  }

 private:
  void Headline() {
    const Decision& decision = explained_.explanation.decision;
    const std::string& list = explained_.explanation.list;
    if (!list.empty()) {
      text_ += decision.allowed ? "allowed by " + list + ", without being counted\n"
                                : "denied by " + list + "\n";
      return;
    }
    const std::string rule(decision.rule);
    if (!decision.allowed) {
      text_ += "denied" + (rule.empty() ? "" : " by " + rule) + ": " + WhyDenied(decision) + "\n";
      const RuleSpec* const spec = FindRule(explained_.policy, rule);
      if (spec != nullptr && !spec->message.empty()) text_ += "message: " + spec->message + "\n";
    } else if (rule.empty()) {
      text_ += decision.reason == Reason::kNoRule ? "allowed: no rule applies\n" : "allowed\n";
    } else {
      text_ += "allowed: nearest to its limit is " + rule + Left(decision, ", ") + "\n";
    }
  }

  static std::string WhyDenied(const Decision& decision) {
    switch (decision.reason) {
      case Reason::kLimited:
        return "not now; it would pass in " +
               TextOf(milliseconds(RoundUpTo<milliseconds>(decision.retry_after)));
      case Reason::kNeverFits:
        return "it costs " + std::to_string(decision.cost) +
               ", and the limit never holds more than " + std::to_string(decision.limit);
      case Reason::kDenyList:
        return "the rule refuses it, whatever was counted";
      case Reason::kOverload:
        return "too many rules match";
      default:
        return std::string(NameOf(decision.reason));
    }
  }

  // Where there is nothing to be left of, nothing.
  static std::string Left(const Decision& decision, std::string_view before) {
    if (decision.limit == 0) return "";
    return std::string(before) + std::to_string(decision.remaining) + " of " +
           std::to_string(decision.limit) + " left";
  }

  void Peer(const std::string& peer) {
    text_ += "peer: " + (peer.empty() ? "a unix socket" : Quoted(peer));
    text_ += explained_.request.trusted
                 ? ", trusted\n"
                 : ", not trusted: believed only where the policy says from: anyone\n";
    for (const auto& [attribute, value] : Identified(explained_.request)) {
      text_ += "  " + Padded(attribute) + secrets_.Shown(attribute, value) + "\n";
    }
  }

  void Rule(const RuleExplanation& rule) {
    text_ += "\n" + rule.rule + ": ";
    if (!rule.matches) {
      text_ += "does not apply: " + secrets_.InReason(rule.why_not, explained_.request) + "\n";
      return;
    }
    text_ += "applies\n";
    Line("key", secrets_.InKey(rule.key));
    const std::string algorithm = AlgorithmOf(explained_.policy, rule);
    Line("limit",
         rule.limit + ", " + algorithm + (algorithm.empty() ? "" : ", ") + "from " + rule.origin);
    Line("mode", rule.mode);
    if (!rule.cost_origin.empty()) {
      Line("cost", std::to_string(rule.cost) + ", " +
                       secrets_.InReason(rule.cost_origin, explained_.request));
    }
    Line("remaining", Left(rule.decision, ""));
  }

  void Line(std::string_view name, const std::string& value) {
    if (!value.empty()) text_ += "  " + Padded(name) + value + "\n";
  }

  static std::string Padded(std::string_view name) {
    constexpr std::size_t kColumn = 11;
    std::string padded(name);
    padded.resize(std::max(kColumn, name.size() + 1), ' ');
    return padded;
  }

  const ExplainedRequest& explained_;
  const Secrets secrets_;
  std::string text_;
};

// --- JSON ---

Json Milliseconds(Duration wait) {
  if (wait == kNever) return nullptr;
  return RoundUpTo<milliseconds>(wait);
}

Json ToJson(const Decision& decision) {
  return {{"allowed", decision.allowed},
          {"rule", decision.rule},
          {"limit", decision.limit},
          {"remaining", decision.remaining},
          {"cost", decision.cost},
          {"retry_after_ms", Milliseconds(decision.retry_after)},
          {"reset_after_ms", Milliseconds(decision.reset_after)},
          {"delay_ms", Milliseconds(decision.delay)},
          {"reason", NameOf(decision.reason)},
          {"source", NameOf(decision.source)}};
}

Json ToJson(const RuleExplanation& rule, const ExplainedRequest& explained,
            const Secrets& secrets) {
  Json json = {{"rule", rule.rule}, {"matches", rule.matches}, {"mode", rule.mode}};
  if (!rule.matches) {
    json["why_not"] = secrets.InReason(rule.why_not, explained.request);
    return json;
  }
  json["key"] = secrets.InKey(rule.key);
  json["limit"] = rule.limit;
  json["algorithm"] = AlgorithmOf(explained.policy, rule);
  json["limit_origin"] = rule.origin;
  json["cost"] = rule.cost;
  json["cost_origin"] = secrets.InReason(rule.cost_origin, explained.request);
  // Behind a list nothing is counted.
  const bool counted = explained.explanation.list.empty();
  json["decision"] = counted ? ToJson(rule.decision) : Json(nullptr);
  return json;
}

}  // namespace

std::string ExplanationText(const ExplainedRequest& explained) {
  return TextReport(explained).Write();
}

std::string ExplanationJson(const ExplainedRequest& explained) {
  const Secrets secrets(explained.policy);
  const Explanation& explanation = explained.explanation;
  Json json = {{"decision", ToJson(explanation.decision)}};
  const RuleSpec* const decider = FindRule(explained.policy, explanation.decision.rule);
  const bool has_message = decider != nullptr && !explanation.decision.allowed;
  json["message"] = has_message ? Json(decider->message) : Json("");
  json["list"] = explanation.list;
  json["tier"] = explanation.tier;
  if (explained.peer) {
    Json found = {{"peer", *explained.peer}, {"trusted", explained.request.trusted}};
    for (const auto& [attribute, value] : Identified(explained.request)) {
      const std::string quoted = secrets.Shown(attribute, value);
      found[std::string(attribute)] =
          value.empty() ? Json(nullptr) : Json(quoted.substr(1, quoted.size() - 2));
    }
    json["identity"] = std::move(found);
  }
  json["rules"] = Json::array();
  for (const RuleExplanation& rule : explanation.rules) {
    json["rules"].push_back(ToJson(rule, explained, secrets));
  }
  return TextOf(json) + "\n";
}

}  // namespace weir
