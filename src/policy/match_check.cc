// Whether the tests of a match make sense, each with its place.
#include "limit/limit_words.h"
#include "policy/address.h"
#include "policy/attribute.h"
#include "policy/condition.h"
#include "policy/path.h"
#include "policy/policy_compiler.h"
#include "policy/policy_ranges.h"

namespace weir {
namespace {

void CheckValues(const AttributeTest& test, AttributeKind kind, const Where& where,
                 ProblemList& problems) {
  for (std::size_t i = 0; i < test.any_of.size(); ++i) {
    const std::string& text = test.any_of[i];
    const Where item(where, i);
    if (text.empty()) {
      problems.Add(ProblemCode::kWrongType, item,
                   "an empty value is never there; write absent, or a value");
    } else if (kind == AttributeKind::kPath) {
      if (auto pattern = PathPattern::Parse(text); !pattern) {
        problems.Add(ProblemCode::kBadPattern, item, pattern.error().message);
      }
    } else if (kind == AttributeKind::kIp && !IpRange::Parse(text)) {
      problems.Add(ProblemCode::kBadAddress, item,
                   Quoted(text) +
                       " is no address or range; write 192.0.2.1 or 10.0.0.0/8, with "
                       "zeros behind the prefix");
    }
  }
}

void CheckTest(const AttributeTest& test, const Where& where, ProblemList& problems) {
  const Result<Attribute> attribute = ParseAttribute(test.attribute);
  if (!attribute) {
    problems.Add(ProblemCode::kUnknownAttribute, where,
                 attribute.error().message + "; besides there are any, all and not",
                 Where::Point::kKey);
    return;
  }
  if (attribute->kind == AttributeKind::kFingerprint ||
      attribute->kind == AttributeKind::kPathSegment) {
    problems.Add(ProblemCode::kMisusedAttribute, where,
                 test.attribute + " can be part of a key, but not of a match; " +
                     (attribute->kind == AttributeKind::kFingerprint
                          ? "match on ip or header.user-agent"
                          : "write what it must be into the pattern of path"),
                 Where::Point::kKey);
    return;
  }
  if (test.wants == AttributeTest::Wants::kValue && test.any_of.empty()) {
    if (problems.HasErrorWithin(where)) return;
    problems.Add(ProblemCode::kWrongType, where, "no value is given; write one, present or absent");
    return;
  }
  CheckValues(test, attribute->kind, where, problems);
}

void CheckAt(int depth, const Match& match, const Where& where, ProblemList& problems);

void CheckEach(int depth, const std::vector<Match>& matches, const Where& where,
               ProblemList& problems) {
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches.size() == 1) {
      CheckAt(depth, matches[i], where, problems);
    } else {
      CheckAt(depth, matches[i], Where(where, i), problems);
    }
  }
}

void CheckAt(int depth, const Match& match, const Where& where, ProblemList& problems) {
  if (depth > kMaxMatchDepth) {
    problems.Add(ProblemCode::kOutOfRange, where,
                 "matches stand in matches more than " + std::to_string(kMaxMatchDepth) +
                     " deep; write them flatter");
    return;
  }
  for (const AttributeTest& test : match.attributes) {
    CheckTest(test, Where(where, test.attribute), problems);
  }
  CheckEach(depth + 1, match.all, Where(where, "all"), problems);
  CheckEach(depth + 1, match.any, Where(where, "any"), problems);
  CheckEach(depth + 1, match.none, Where(where, "not"), problems);
}

}  // namespace

void CheckMatch(const Match& match, const Where& where, ProblemList& problems) {
  CheckAt(1, match, where, problems);
}

}  // namespace weir
