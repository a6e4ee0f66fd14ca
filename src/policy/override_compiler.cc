// The overrides of a rule: each row is made a request that has just the attributes it names, and
// its key is written as that of any request, so that the two cannot differ.
#include <algorithm>
#include <utility>

#include "limit/limit_words.h"
#include "policy/file_text.h"
#include "policy/override_file.h"
#include "policy/rule_compiler.h"

namespace weir {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

// The attributes of one row as a request.
class RowRequest {
 public:
  // Nothing, or what is wrong.
  std::string Set(std::span<const std::pair<std::string_view, std::string_view>> key,
                  const KeyPlan& plan) {
    request_ = {};
    headers_.clear();
    cookies_.clear();
    query_.clear();
    descriptors_.clear();
    for (const auto& [name, value] : key) {
      const Attribute* attribute = Find(name, plan);
      if (attribute == nullptr) {
        return name.empty() ? "the rule's key has several attributes; name them"
                            : Quoted(name) + " is no part of the rule's key";
      }
      if (value.empty()) return "the value of " + Quoted(name) + " is empty";
      if (std::string problem = Put(*attribute, value); !problem.empty()) return problem;
    }
    request_.headers = headers_;
    request_.cookies = cookies_;
    request_.query = query_;
    request_.descriptors = descriptors_;
    return "";
  }

  const Request& request() const { return request_; }

 private:
  static const Attribute* Find(std::string_view name, const KeyPlan& plan) {
    const KeyPlan::Source* only = nullptr;
    std::size_t count = 0;
    for (const auto& alternatives : plan.parts()) {
      for (const KeyPlan::Source& source : alternatives) {
        ++count;
        only = &source;
        if (!name.empty() && ToString(source.attribute) == name) return &source.attribute;
      }
    }
    return name.empty() && count == 1 ? &only->attribute : nullptr;
  }

  std::string Put(const Attribute& attribute, std::string_view value) {
    switch (attribute.kind) {
      case AttributeKind::kIp:
        if (!IpAddress::Parse(value)) return Quoted(value) + " is no address";
        request_.ip = value;
        return "";
      case AttributeKind::kUser:
        request_.user = value;
        return "";
      case AttributeKind::kApiKey:
        request_.api_key = value;
        return "";
      case AttributeKind::kOrg:
        request_.org = value;
        return "";
      case AttributeKind::kTier:
        request_.tier = value;
        return "";
      case AttributeKind::kMethod:
        request_.method = value;
        return "";
      case AttributeKind::kPath:
        request_.path = value;
        return "";
      case AttributeKind::kHost:
        request_.host = value;
        return "";
      case AttributeKind::kDomain:
        request_.domain = value;
        return "";
      case AttributeKind::kHeader:
        headers_.push_back({attribute.name, value});
        return "";
      case AttributeKind::kCookie:
        cookies_.push_back({attribute.name, value});
        return "";
      case AttributeKind::kQuery:
        query_.push_back({attribute.name, value});
        return "";
      case AttributeKind::kDescriptor:
        descriptors_.push_back({attribute.name, value});
        return "";
      default:
        return "overrides cannot name " + ToString(attribute);
    }
  }

  Request request_;
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
    if (std::string problem = row_.Set(key, plan); !problem.empty()) {
      return Refusal{ProblemCode::kForeignOverride, std::move(problem)};
    }
    const Facts facts(row_.request());
    writer_.Begin();
    if (!plan.Write(facts, match_, *policy_.hash, writer_)) {
      return Refusal{ProblemCode::kForeignOverride, "the row does not name the whole key"};
    }
    std::uint32_t number = 0;
    if (auto refusal = LimitNumber(limit, number)) return refusal;
    if (table_->Add(writer_.Finish(), {.limit = number, .row = row})) return std::nullopt;
    return Refusal{ProblemCode::kDuplicateOverride, "there is an override for this key already"};
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
    if (!CountsAlike(rule_.limits.front(), *limit)) {
      return Refusal{ProblemCode::kAnotherKindOfLimit,
                     Quoted(text) +
                         " counts in another way than the rule; change only count and "
                         "burst, and the period of a bucket"};
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

void AddFile(const std::string& path, const Where& where, CompiledPolicy& policy,
             OverrideCompiler& compiler, ProblemList& problems) {
  policy.files.push_back(path);
  const Result<OverrideFormat> format = OverrideFormatOf(path);
  if (!format) return problems.Add(ProblemCode::kBadOverrideFile, where, format.error().message);
  Result<std::string> text = ReadWholeFile(path, kMaxFileBytes);
  if (!text) return problems.Add(ProblemCode::kUnreadable, where, text.error().message);
  const auto lines = static_cast<std::size_t>(std::ranges::count(*text, '\n'));
  compiler.Expect(std::min(lines, kMaxOverrideRows));
  constexpr int kMostProblems = 20;
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
  OverrideCompiler compiler(spec, match, policy, rule);
  for (std::size_t i = 0; i < spec.overrides.size(); ++i) {
    const OverrideSpec& row = spec.overrides[i];
    // In a file either a row of a list, or a key of a map.
    const bool by_value = row.key.size() == 1 && row.key.front().first.empty();
    const Where row_where =
        by_value ? Where(overrides_where, row.key.front().second) : Where(overrides_where, i);
    const std::vector<std::pair<std::string_view, std::string_view>> key(row.key.begin(),
                                                                         row.key.end());
    if (const auto refusal = compiler.Add(key, row.limit, static_cast<std::uint32_t>(i + 1))) {
      problems.Add(refusal->code, row_where, refusal->message);
    }
  }
  for (const std::string& file : spec.override_files) {
    AddFile(PathIn(folder, file), overrides_where, policy, compiler, problems);
  }
  compiler.Finish();
}

}  // namespace weir
