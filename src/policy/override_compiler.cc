// The overrides of a rule: each row is made a request that has just the attributes it names, and
// its key is written as that of any request, so that the two cannot differ.
#include <algorithm>
#include <utility>

#include "limit/limit_words.h"
#include "policy/file_text.h"
#include "policy/override_file.h"
#include "policy/policy_reader.h"
#include "policy/rule_compiler.h"

namespace weir {
namespace {

// Of one rule's rows in the policy, or in one file; nobody reads more, and it may have millions.
constexpr int kMostProblems = 20;

// The attributes of one row as a request.
class RowRequest {
 public:
  using Pair = std::pair<std::string_view, std::string_view>;

  // Nothing, or what is wrong.
  std::string Set(std::span<const Pair> key, const KeyPlan& plan) {
    request_ = {};
    named_.clear();
    headers_.clear();
    cookies_.clear();
    query_.clear();
    descriptors_.clear();
    for (const auto& [name, value] : key) {
      const Attribute* attribute = Find(name, plan);
      if (attribute == nullptr) return NotFound(name, plan);
      if (value.empty()) return "the value of " + ToString(*attribute) + " is empty; write one";
      if (std::ranges::find(named_, attribute) != named_.end()) {
        return ToString(*attribute) + " is there twice; remove one of them";
      }
      named_.push_back(attribute);
      if (std::string problem = Put(*attribute, value); !problem.empty()) return problem;
    }
    request_.headers = headers_;
    request_.cookies = cookies_;
    request_.query = query_;
    request_.descriptors = descriptors_;
    return FindUnused(plan);
  }

  const Request& request() const { return request_; }

  // For people: "user and ip".
  static std::string NamesOf(const KeyPlan& plan) {
    std::string names;
    for (const auto& alternatives : plan.parts()) {
      if (!names.empty()) names += " and ";
      for (const KeyPlan::Source& source : alternatives) {
        if (&source != &alternatives.front()) names += " or ";
        names += ToString(source.attribute);
      }
    }
    return names;
  }

 private:
  static const Attribute* Find(std::string_view name, const KeyPlan& plan) {
    if (name.empty()) {
      const bool single = plan.parts().size() == 1 && plan.parts().front().size() == 1;
      return single ? &plan.parts().front().front().attribute : nullptr;
    }
    if (const Attribute* found = FindExactly(name, plan)) return found;
    const Result<Attribute> parsed = ParseAttribute(name);  // header.X-Team is header.x-team.
    return parsed ? FindExactly(ToString(*parsed), plan) : nullptr;
  }

  static const Attribute* FindExactly(std::string_view name, const KeyPlan& plan) {
    for (const auto& alternatives : plan.parts()) {
      for (const KeyPlan::Source& source : alternatives) {
        if (ToString(source.attribute) == name) return &source.attribute;
      }
    }
    return nullptr;
  }

  static std::string NotFound(std::string_view name, const KeyPlan& plan) {
    return (name.empty() ? "the rule's key has several attributes"
                         : Quoted(name) + " is no part of the rule's key") +
           "; name " + NamesOf(plan);
  }

  // A request is known by the first of some attributes that it has; a row that names two of them
  // is for a key that cannot be.
  std::string FindUnused(const KeyPlan& plan) {
    used_.clear();
    for (const auto& alternatives : plan.parts()) {
      for (const KeyPlan::Source& source : alternatives) {
        const auto same = [&](const Attribute* named) { return *named == source.attribute; };
        const auto found = std::ranges::find_if(named_, same);
        if (found == named_.end()) continue;
        used_.push_back(*found);
        break;
      }
    }
    for (const Attribute* named : named_) {
      if (std::ranges::find(used_, named) != used_.end()) continue;
      return ToString(*named) + " is not counted beside the others that the row names; remove it";
    }
    return "";
  }

  // What is wrong with it, or nothing.
  std::string Put(const Attribute& attribute, std::string_view value) {
    if (attribute.kind == AttributeKind::kIp && !IpAddress::Parse(value)) {
      return Quoted(value) + " is no address; write a single one, not a range";
    }
    if (std::string_view* const text = TextOf(attribute.kind)) {
      *text = value;
    } else if (std::vector<NamedValue>* const values = ValuesOf(attribute.kind)) {
      values->push_back({attribute.name, value});
    } else {
      return "overrides cannot be for " + ToString(attribute) +
             ", which is worked out from the request; write another rule";
    }
    return "";
  }

  std::string_view* TextOf(AttributeKind kind) {
    switch (kind) {
      case AttributeKind::kIp:
        return &request_.ip;
      case AttributeKind::kUser:
        return &request_.user;
      case AttributeKind::kApiKey:
        return &request_.api_key;
      case AttributeKind::kOrg:
        return &request_.org;
      case AttributeKind::kTier:
        return &request_.tier;
      case AttributeKind::kMethod:
        return &request_.method;
      case AttributeKind::kPath:
        return &request_.path;
      case AttributeKind::kHost:
        return &request_.host;
      case AttributeKind::kDomain:
        return &request_.domain;
      default:
        return nullptr;
    }
  }

  std::vector<NamedValue>* ValuesOf(AttributeKind kind) {
    switch (kind) {
      case AttributeKind::kHeader:
        return &headers_;
      case AttributeKind::kCookie:
        return &cookies_;
      case AttributeKind::kQuery:
        return &query_;
      case AttributeKind::kDescriptor:
        return &descriptors_;
      default:
        return nullptr;
    }
  }

  Request request_;
  std::vector<const Attribute*> named_, used_;
  std::vector<NamedValue> headers_, cookies_, query_, descriptors_;
};

class OverrideCompiler {
 public:
  OverrideCompiler(const RuleSpec& spec, const CompiledMatch& match, CompiledPolicy& policy,
                   CompiledRule& rule)
      : spec_(spec),
        match_(match),
        policy_(policy),
        rule_(rule),
        table_(std::make_shared<OverrideTable>()) {}

  // About so many rows will come, which spares the table growing, and memory.
  void Expect(std::size_t rows) {
    if (table_->size() == 0) table_ = std::make_shared<OverrideTable>(rows);
  }

  struct Refusal {
    ProblemCode code;
    std::string message;
  };
  // Nothing, or why the row cannot be used.
  std::optional<Refusal> Add(std::span<const std::pair<std::string_view, std::string_view>> key,
                             std::string_view limit, std::uint32_t row) {
    const KeyPlan& plan = policy_.keys[rule_.key];
    if (plan.parts().empty()) {
      return Refusal{ProblemCode::kForeignOverride,
                     "all requests share one count here; change the rule's limit instead"};
    }
    if (limit.empty()) {
      return Refusal{ProblemCode::kMissing, "the row has no limit; write limit: ..."};
    }
    if (std::string problem = row_.Set(key, plan); !problem.empty()) {
      return Refusal{ProblemCode::kForeignOverride, std::move(problem)};
    }
    const Facts facts(row_.request());
    writer_.Begin();
    if (!plan.Write(facts, match_, *policy_.hash, writer_)) {
      return Refusal{ProblemCode::kForeignOverride,
                     "the row does not name the whole key; name " + RowRequest::NamesOf(plan)};
    }
    std::uint32_t number = 0;
    if (auto refusal = LimitNumber(limit, number)) return refusal;
    const std::string_view subject = writer_.Finish();
    if (table_->Add(subject, {.limit = number, .row = row})) return std::nullopt;
    return Refusal{ProblemCode::kDuplicateOverride,
                   "row " + std::to_string(table_->Find(subject)->row) +
                       " is for the same key; remove one of the two"};
  }

  void Finish() {
    if (table_->size() > 0) rule_.overrides = std::move(table_);
  }

 private:
  std::optional<Refusal> LimitNumber(std::string_view text, std::uint32_t& number) {
    text_ = text;
    if (const auto found = numbers_.find(text_); found != numbers_.end()) {
      number = found->second;
      return std::nullopt;
    }
    Result<Limit> limit = Limit::Parse(text, LimitDefaults(spec_, policy_.spec));
    if (!limit) return Refusal{ProblemCode::kBadLimit, limit.error().message};
    if (std::string why = WhyBeyondStore(*limit, policy_.spec); !why.empty()) {
      return Refusal{ProblemCode::kBeyondStore, std::move(why)};
    }
    const Limit* const counted = FirstCounted(rule_);
    if (counted != nullptr && !CountsAlike(*counted, *limit)) {
      return Refusal{ProblemCode::kAnotherKindOfLimit,
                     Quoted(text) + " counts in another way than " + Quoted(counted->ToString()) +
                         " of the same rule; change only count and burst, and the period of a "
                         "bucket"};
    }
    number = static_cast<std::uint32_t>(rule_.limits.size());
    rule_.limits.push_back(*std::move(limit));
    numbers_.emplace(text_, number);
    return std::nullopt;
  }

  const RuleSpec& spec_;
  const CompiledMatch& match_;
  CompiledPolicy& policy_;
  CompiledRule& rule_;
  std::shared_ptr<OverrideTable> table_;
  RowRequest row_;
  SubjectWriter writer_;
  std::string text_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

// Where the rows of a spec stand in its file: the keys of a map, or the items of a list that are
// not names of files.
class RowPlaces {
 public:
  RowPlaces(const Where& where, const ProblemList& problems)
      : where_(where), node_(problems.NodeAt(where)) {
    if (node_ == nullptr || node_->kind != YamlNode::Kind::kList) return;
    for (std::size_t i = 0; i < node_->items.size(); ++i) {
      if (!IsOverrideFile(node_->items[i])) items_.push_back(i);
    }
  }

  // Refers to the row.
  Where Of(std::size_t number, const OverrideSpec& row) const {
    if (node_ != nullptr && node_->kind == YamlNode::Kind::kMap && !row.key.empty()) {
      return {where_, row.key.front().second};
    }
    return {where_, number < items_.size() ? items_[number] : number};
  }

 private:
  const Where& where_;
  const YamlNode* node_;
  std::vector<std::size_t> items_;
};

void AddFile(const std::string& path, const Where& where, CompiledPolicy& policy,
             OverrideCompiler& compiler, ProblemList& problems) {
  policy.files.push_back(path);
  const Result<OverrideFormat> format = OverrideFormatOf(path);
  if (!format) return problems.Add(ProblemCode::kBadOverrideFile, where, format.error().message);
  Result<std::string> text = ReadWholeFile(path, kMaxOverrideFileBytes);
  if (!text) return problems.Add(ProblemCode::kUnreadable, where, text.error().message);
  const auto lines = static_cast<std::size_t>(std::ranges::count(*text, '\n'));
  compiler.Expect(std::min(lines, kMaxOverrideRows));
  int refused = 0;
  const auto found = ReadOverrideFile(*text, *format, [&](const OverrideRow& row) {
    if (refused >= kMostProblems) return;
    const auto refusal = compiler.Add(row.key, row.limit, row.line);
    if (!refusal) return;
    ++refused;
    problems.AddAt(refusal->code, path, {.line = static_cast<int>(row.line), .column = 1},
                   where.ToString(), refusal->message);
  });
  for (const OverrideFileProblem& problem : found) {
    problems.AddAt(ProblemCode::kBadOverrideFile, path,
                   {.line = problem.line, .column = problem.column}, where.ToString(),
                   problem.message);
  }
}

}  // namespace

void CompileOverrides(const RuleSpec& spec, const CompiledMatch& match, const Where& where,
                      const std::string& folder, CompiledPolicy& policy, CompiledRule& rule,
                      ProblemList& problems) {
  if (spec.overrides.empty() && spec.override_files.empty()) return;
  const Where overrides_where(where, "overrides");
  const RowPlaces places(overrides_where, problems);
  OverrideCompiler compiler(spec, match, policy, rule);
  int refused = 0;
  for (std::size_t i = 0; i < spec.overrides.size() && refused < kMostProblems; ++i) {
    const OverrideSpec& row = spec.overrides[i];
    const std::vector<std::pair<std::string_view, std::string_view>> key(row.key.begin(),
                                                                         row.key.end());
    const auto refusal = compiler.Add(key, row.limit, static_cast<std::uint32_t>(i + 1));
    if (!refusal) continue;
    ++refused;
    const Where row_where = places.Of(i, row);
    if (!problems.HasErrorWithin(row_where)) {
      problems.Add(refusal->code, row_where, refusal->message);
    }
  }
  for (const std::string& file : spec.override_files) {
    AddFile(PathIn(folder, file), overrides_where, policy, compiler, problems);
  }
  compiler.Finish();
}

}  // namespace weir
