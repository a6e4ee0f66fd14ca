#include "policy/problems.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

namespace weir {
namespace {

constexpr int kFirstAdvice = 1000;

constexpr auto kCodes = std::to_array<CodeMeaning>({
    {ProblemCode::kNotYaml, "The text is not YAML.",
     "Mend the place named; a tab for indentation and a missing space behind a colon are common."},
    {ProblemCode::kNothing, "The file holds nothing but blanks and comments.",
     "Write at least `rules:`. A file that was emptied by accident never replaces a policy."},
    {ProblemCode::kSeveralDocuments, "The file holds more than one document.",
     "Remove the line `---` between them, or split the file."},
    {ProblemCode::kTag, "A tag such as `!thing` stands before a value.", "Remove it."},
    {ProblemCode::kBadKey, "The key of a map is not a plain text, or is `<<`.",
     "Write the keys out; merging maps is not supported."},
    {ProblemCode::kDuplicateKey, "A key stands twice in one map.", "Remove one of them."},
    {ProblemCode::kAlias, "An alias cannot be followed, or aliases make the file too large.",
     "Write the value out."},
    {ProblemCode::kTooLarge, "The file is too long, too deep or has too many values.",
     "Move per-key limits to a file of overrides."},
    {ProblemCode::kEncoding,
     "The file or a text is not UTF-8, or the file holds control characters.",
     "Save it as UTF-8; write control characters as escapes in double quotes."},
    {ProblemCode::kUnknownKey, "There is no such key here.",
     "Take the name that the message proposes, or remove it."},
    {ProblemCode::kWrongType, "A map, a list or a text stands where another was expected.",
     "Write what the message names."},
    {ProblemCode::kNotANumber, "A whole number was expected.",
     "Write digits, perhaps with k, M, G."},
    {ProblemCode::kNotABool, "`true` or `false` was expected.", "Write one of them."},
    {ProblemCode::kNotALength, "A length of time was expected.",
     "Write a number and ms, s, min, h, day or week: 200ms."},
    {ProblemCode::kNotASize, "A size in bytes was expected.", "Write 64KiB, 256MiB or 1GiB."},
    {ProblemCode::kUnknownWord, "The word is none of those allowed here.",
     "Take one of those that the message lists."},
    {ProblemCode::kUnreadable, "A file cannot be read.", "Look at its path and its rights."},
    {ProblemCode::kMissing, "A key that is needed is not there.", "Write it."},
    {ProblemCode::kBadLimit, "The limit makes no sense.",
     "See docs/limits.md for the text, the ranges and what goes together."},
    {ProblemCode::kDuplicateRule, "Two rules have the same name.",
     "Rename one: counts go by the name."},
    {ProblemCode::kBadName, "A name is empty, too long, or holds characters that it may not.",
     "Use letters, digits, `.`, `_` and `-`, at most 64; tiers may have any name of up to 256 "
     "bytes."},
    {ProblemCode::kUnknownAttribute, "There is no such attribute.",
     "Take one of those that the message lists."},
    {ProblemCode::kMisusedAttribute, "The attribute cannot be used here.",
     "Do what the message says."},
    {ProblemCode::kBadPattern, "The path pattern makes no sense.",
     "Start with a slash; use `*`, `{name}` and at most one `**`."},
    {ProblemCode::kBadAddress, "Not an address, and not a range of addresses.",
     "Write 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32."},
    {ProblemCode::kNeverMatches, "No request can ever match.",
     "Remove one of the two conditions that exclude each other."},
    {ProblemCode::kNoSuchTierLimit, "A tier has no limit of that name.",
     "Give every tier the limit, or take a name that all of them have."},
    {ProblemCode::kNoDefaultTier, "Rules depend on the tier, but no default tier is set.",
     "Write `identity: { tier: { default: NAME } }` with one of the tiers."},
    {ProblemCode::kAnotherKindOfLimit, "A tier or an override counts in another way than its rule.",
     "Tiers and overrides may change count and burst, and the period of a bucket; write another "
     "rule for anything else."},
    {ProblemCode::kTwoLimits, "A rule has both a limit and that of a tier.",
     "Write either `limit: 100/min` or `limit: { tier: NAME }`."},
    {ProblemCode::kForeignOverride, "An override names a key that the rule cannot have.",
     "Name the attributes of the rule's key, each once, and of first_of just one."},
    {ProblemCode::kDuplicateOverride, "Two overrides are for the same key.", "Remove one of them."},
    {ProblemCode::kBadOverrideFile, "A row of a file of overrides cannot be used.",
     "Mend the row; the whole file counts or none of it."},
    {ProblemCode::kBadCost, "The cost makes no sense.",
     "Write a number, or where it comes from with min, max and default."},
    {ProblemCode::kBadBlock, "The ban makes no sense.",
     "Write `block: { after: 10 denials in 1min, for: 10min, growing: 2x up to 1day }`."},
    {ProblemCode::kBadPercent, "Not a share.", "Write a number from 0 to 100."},
    {ProblemCode::kBadStore, "Not the address of a store.",
     "Write memory, redis://HOST:PORT, rediss://, redis+unix://, redis+cluster:// or "
     "redis+sentinel://; shards are a list of different ones."},
    {ProblemCode::kBadListener, "Not something to listen on.",
     "Write 127.0.0.1:8080, [::1]:8080 or unix:/path, each once; TLS needs a certificate and a "
     "key, manage_token a token."},
    {ProblemCode::kBadSecret, "The secret cannot be had.",
     "Write env:NAME or file:PATH; at least 16 bytes."},
    {ProblemCode::kSecretNeeded, "Hashed keys in a shared store need a secret that all nodes know.",
     "Write `hash_secret: env:NAME` or `file:PATH`."},
    {ProblemCode::kTwoWaysOfTrust, "Proxies are both counted and named.",
     "Write either client_ip.hops or trusted_proxies."},
    {ProblemCode::kBadMessage, "The message is too long or not plain text.",
     "Write up to 512 bytes without line breaks."},
    {ProblemCode::kOutOfRange, "The value is out of range.", "Stay within what the message says."},
    {ProblemCode::kTooManyRules, "Too many rules apply to every request.",
     "Give some of them a match; at most 32 may do without."},
    {ProblemCode::kBadIdentity, "The identity cannot come from there.",
     "Write user, api_key, org or tier, and one header, cookie or query to take it from."},
    {ProblemCode::kBeyondStore, "The limit is more than a shared store can count.",
     "Write at most 1,000,000 a second for buckets and 10,000 for logs and concurrency, or `store: "
     "memory`."},
    {ProblemCode::kBoundaryBurst,
     "A fixed window guards a sensitive path: twice the limit may pass around a boundary.",
     "Use sliding_log, or sliding_window with strict."},
    {ProblemCode::kSharedAddress,
     "Those who are logged in are counted by address: one office or mobile network is one client.",
     "Use `key: user`, or `key: [user, ip]`."},
    {ProblemCode::kLargeLog, "A sliding log this long takes much memory for every key.",
     "Use sliding_window, with strict if it must be exact."},
    {ProblemCode::kChosenCost, "The client can choose what its requests cost.",
     "Write `from: trusted`, or a min that hurts nobody."},
    {ProblemCode::kUnboundedKey, "A part of the key can take any value, so everybody can be new.",
     "Count by something that the client cannot choose, or add such a rule beside it."},
    {ProblemCode::kUnguaranteedKey,
     "The key uses an attribute that some matching requests do not have; they share one count.",
     "Match on its presence, use first_of, or write `unidentified: skip` or `deny`."},
    {ProblemCode::kCovered, "A tighter rule applies to every request that this one does.",
     "Remove this rule; it never decides."},
    {ProblemCode::kNoRules, "There are no rules, or all are off: nothing is limited.",
     "Write some, or remove `mode: off`."},
    {ProblemCode::kTrustsEveryone, "Everybody may say who the client is.",
     "Name your proxies in trusted_proxies; where they are counted instead, let nobody else "
     "connect: "
     "a token, client_ca, loopback or a unix socket."},
    {ProblemCode::kUnusedTier, "No rule uses this limit of the tiers.", "Remove it, or use it."},
    {ProblemCode::kForgeableIdentity, "Clients can name themselves as they please.",
     "Leave out `from: anyone`, unless the value is a secret that is checked elsewhere."},
    {ProblemCode::kClearToken, "A secret of the client's is stored in clear as part of keys.",
     "Write `hash: true` beside it."},
    {ProblemCode::kIdleSetting, "The setting has no effect here.", "Remove it."},
});

std::string PlaceText(const Problem& problem) {
  if (problem.line == 0) return problem.file.empty() ? problem.where : problem.file;
  return (problem.file.empty() ? "" : problem.file + ":") + std::to_string(problem.line) + ":" +
         std::to_string(problem.column);
}

}  // namespace

std::span<const CodeMeaning> AllProblemCodes() { return kCodes; }

std::string NameOf(ProblemCode code) {
  const int number = std::to_underlying(code);
  const bool advice = number >= kFirstAdvice;
  const std::string digits = std::to_string(1000 + (advice ? number - kFirstAdvice : number));
  return (advice ? "W" : "E") + digits.substr(1);
}

ProblemCode CodeFor(YamlProblem::Kind kind) {
  switch (kind) {
    case YamlProblem::Kind::kSyntax:
      return ProblemCode::kNotYaml;
    case YamlProblem::Kind::kNoDocument:
      return ProblemCode::kNothing;
    case YamlProblem::Kind::kSeveral:
      return ProblemCode::kSeveralDocuments;
    case YamlProblem::Kind::kTag:
      return ProblemCode::kTag;
    case YamlProblem::Kind::kKey:
      return ProblemCode::kBadKey;
    case YamlProblem::Kind::kDuplicateKey:
      return ProblemCode::kDuplicateKey;
    case YamlProblem::Kind::kAlias:
      return ProblemCode::kAlias;
    case YamlProblem::Kind::kTooLarge:
      return ProblemCode::kTooLarge;
    default:
      return ProblemCode::kEncoding;
  }
}

std::string Problem::ToString() const {
  const std::string place = PlaceText(*this);
  return (place.empty() ? "" : place + ": ") + code + " " + message;
}

std::string Where::ToString() const {
  if (parent_ == nullptr) return "";
  const std::string before = parent_->ToString();
  if (index_ >= 0) return before + "[" + std::to_string(index_) + "]";
  return before.empty() ? std::string(key_) : before + "." + std::string(key_);
}

Where::Found Where::Walk(const YamlNode& root, Point point) const {
  if (parent_ == nullptr) return {.node = &root, .place = root.place, .whole = true};
  Found found = parent_->Walk(root, point);
  if (!found.whole) return found;
  if (index_ >= 0) {
    const auto index = static_cast<std::size_t>(index_);
    if (found.node->kind == YamlNode::Kind::kList && index < found.node->items.size()) {
      const YamlNode& item = found.node->items[index];
      return {.node = &item, .place = item.place, .whole = true};
    }
  } else if (found.node->kind == YamlNode::Kind::kMap) {
    for (const YamlNode::Entry& entry : found.node->entries) {
      if (entry.key != key_) continue;
      const bool scalar = entry.value.kind == YamlNode::Kind::kScalar;
      const bool at_key = point == Point::kKey || !scalar;
      return {
          .node = &entry.value, .place = at_key ? entry.place : entry.value.place, .whole = true};
    }
  }
  found.whole = false;
  return found;
}

YamlPlace Where::Find(const YamlNode& root, Point point) const { return Walk(root, point).place; }

const YamlNode* Where::FindNode(const YamlNode& root) const {
  const Found found = Walk(root, Point::kValue);
  return found.whole ? found.node : nullptr;
}

void ProblemList::Add(ProblemCode code, const Where& where, std::string message,
                      Where::Point point) {
  const bool is_error = std::to_underlying(code) < kFirstAdvice;
  if (problems_.size() > kMost) {
    // Nobody reads so many, and finding the place of each takes time.
    if (is_error) ++errors_;
    return;
  }
  if (problems_.size() == kMost) {
    code = ProblemCode::kTooLarge;
    message = "there are more problems than " + std::to_string(kMost) +
              ", and from here on they are left out; mend the others first";
  }
  const YamlPlace place =
      root_ != nullptr ? where.Find(*root_, point) : YamlPlace{.line = 0, .column = 0};
  AddAt(code, file_, place, where.ToString(), std::move(message));
}

void ProblemList::AddAt(ProblemCode code, const std::string& file, YamlPlace place,
                        std::string where, std::string message) {
  const bool error = std::to_underlying(code) < kFirstAdvice;
  if (error) {
    ++errors_;
    error_places_.insert(where);
  }
  problems_.push_back({.code = NameOf(code),
                       .severity = error ? Severity::kError : Severity::kAdvice,
                       .file = file,
                       .line = place.line,
                       .column = place.column,
                       .where = std::move(where),
                       .message = std::move(message)});
}

bool ProblemList::HasErrorWithin(const Where& where) const {
  const std::string text = where.ToString();
  for (auto at = error_places_.lower_bound(text); at != error_places_.end(); ++at) {
    if (!at->starts_with(text)) return false;
    if (at->size() == text.size() || (*at)[text.size()] == '.' || (*at)[text.size()] == '[') {
      return true;
    }
  }
  return false;
}

std::vector<Problem> ProblemList::Take() {
  std::vector<std::size_t> order(problems_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});  // NOLINT(modernize-use-ranges): g++ 12
  // Of those at one place the first that was found comes first.
  std::ranges::sort(order, {}, [this](std::size_t number) {
    const Problem& problem = problems_[number];
    return std::tuple(problem.file != file_, std::string_view(problem.file), problem.line,
                      problem.column, number);
  });
  std::vector<Problem> sorted;
  sorted.reserve(order.size());
  for (const std::size_t number : order) sorted.push_back(std::move(problems_[number]));
  problems_.clear();
  return sorted;
}

}  // namespace weir
