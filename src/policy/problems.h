// What can be wrong with a policy: one table of codes, and a list that is filled while a policy is
// read and checked. Nothing stops at the first problem.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/policy.h>

#include "policy/yaml_tree.h"

namespace weir {

// Their numbers are part of the interface: scripts and people search for them. Never reuse one.
enum class ProblemCode : std::uint16_t {
  // Syntax.
  kNotYaml = 1,
  kNothing = 2,
  kSeveralDocuments = 3,
  kTag = 4,
  kBadKey = 5,
  kDuplicateKey = 6,
  kAlias = 7,
  kTooLarge = 8,
  kEncoding = 9,
  kUnknownKey = 10,
  kWrongType = 11,
  kNotANumber = 12,
  kNotABool = 13,
  kNotALength = 14,
  kNotASize = 15,
  kUnknownWord = 16,
  kUnreadable = 17,
  kMissing = 18,
  // Meaning.
  kBadLimit = 101,
  kDuplicateRule = 102,
  kBadName = 103,
  kUnknownAttribute = 104,
  kMisusedAttribute = 105,
  kBadPattern = 106,
  kBadAddress = 107,
  kNeverMatches = 108,
  kNoSuchTierLimit = 109,
  kNoDefaultTier = 110,
  kAnotherKindOfLimit = 111,
  kTwoLimits = 112,
  kForeignOverride = 113,
  kDuplicateOverride = 114,
  kBadOverrideFile = 115,
  kBadCost = 116,
  kBadBlock = 117,
  kBadPercent = 118,
  kBadStore = 119,
  kBadListener = 120,
  kBadSecret = 121,
  kSecretNeeded = 122,
  kTwoWaysOfTrust = 123,
  kBadMessage = 124,
  kOutOfRange = 125,
  kTooManyRules = 126,
  kBadIdentity = 127,
  kBeyondStore = 128,
  // Advice.
  kBoundaryBurst = 1101,
  kSharedAddress = 1102,
  kLargeLog = 1103,
  kChosenCost = 1104,
  kUnboundedKey = 1105,
  kUnguaranteedKey = 1106,
  kCovered = 1107,
  kNoRules = 1108,
  kTrustsEveryone = 1109,
  kUnusedTier = 1110,
  kForgeableIdentity = 1111,
  kClearToken = 1112,
  kIdleSetting = 1113,
};

struct CodeMeaning {
  ProblemCode code;
  std::string_view meaning;
  std::string_view remedy;
};
// Every code, ascending.
std::span<const CodeMeaning> AllProblemCodes();
// E010, W101.
std::string NameOf(ProblemCode code);
// What a text that is no YAML document is reported as.
ProblemCode CodeFor(YamlProblem::Kind kind);

// A place in a policy: a chain of keys and numbers from the innermost outwards, on the stack of
// whoever is looking at it.
class Where {
 public:
  Where() = default;
  Where(const Where& parent, std::string_view key) : parent_(&parent), key_(key) {}
  Where(const Where& parent, std::size_t index)
      : parent_(&parent), index_(static_cast<std::int64_t>(index)) {}

  // rules[2].match.path
  std::string ToString() const;
  // The node it is about; of one that is not there the innermost that is.
  enum class Point : std::uint8_t { kValue, kKey };
  YamlPlace Find(const YamlNode& root, Point point) const;
  // Null if it is not there.
  const YamlNode* FindNode(const YamlNode& root) const;

 private:
  struct Found {
    const YamlNode* node;
    YamlPlace place;
    bool whole;  // All steps were found.
  };
  Found Walk(const YamlNode& root, Point point) const;

  const Where* parent_ = nullptr;
  std::string_view key_{};
  std::int64_t index_ = -1;
};

class ProblemList {
 public:
  explicit ProblemList(std::string file) : file_(std::move(file)) {}

  // Places are looked up in here from now on; must stay.
  void SetTree(const YamlNode* root) { root_ = root; }

  void Add(ProblemCode code, const Where& where, std::string message,
           Where::Point point = Where::Point::kValue);
  void AddAt(ProblemCode code, const std::string& file, YamlPlace place, std::string where,
             std::string message);

  bool has_errors() const { return errors_ > 0; }
  // Whether there is an error at this place or inside it. What is not there because it could not be
  // read need not be missed as well.
  bool HasErrorWithin(const Where& where) const;
  bool HasErrorAt(const Where& where) const { return error_places_.contains(where.ToString()); }
  // The node at a place of the file; null if there is none, or no file.
  const YamlNode* NodeAt(const Where& where) const {
    return root_ != nullptr ? where.FindNode(*root_) : nullptr;
  }
  std::size_t errors() const { return errors_; }
  const std::string& file() const { return file_; }
  // By place, errors and advice mixed.
  std::vector<Problem> Take();

 private:
  static constexpr std::size_t kMost = 1'000;  // Problems that are told.

  std::string file_;
  const YamlNode* root_ = nullptr;
  std::vector<Problem> problems_;
  std::size_t errors_ = 0;
  std::set<std::string> error_places_;
};

}  // namespace weir
