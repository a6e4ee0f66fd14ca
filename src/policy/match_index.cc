#include "policy/match_index.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/mix.h"
#include "policy/anchor.h"
#include "policy/text_hash.h"

namespace weir {
namespace {

// Which entries were met already. Of a name that a request has many times only the first counts,
// and looking all of them up would let it buy much work with few bytes.
class SeenEntries {
 public:
  explicit SeenEntries(std::size_t entries) {
    if (entries > few_.size()) many_.resize(entries);
  }

  // Whether this is the first time.
  bool Add(std::size_t entry) {
    if (!many_.empty()) return !std::exchange(many_[entry], 1);
    const bool first = !few_[entry];
    few_.set(entry);
    return first;
  }

 private:
  std::bitset<512> few_;
  std::vector<char> many_;
};

}  // namespace

class MatchIndex::Builder {
 public:
  Builder(std::span<const CompiledMatch> matches, MatchIndex& index)
      : matches_(matches), index_(index) {}

  void Build() {
    for (const CompiledMatch& match : matches_) Count(match);
    for (std::uint32_t number = 0; number < matches_.size(); ++number) {
      const std::optional<Choice> choice = Choose(matches_[number]);
      if (!choice) filed_.push_back({.found_by_key = false, .key = kAlways, .number = number});
      bool sure = choice.has_value();
      for (const Anchor& anchor : choice ? choice->anchors : std::vector<Anchor>()) {
        sure = File(anchor, number) && sure;
      }
      index_.sure_.push_back(sure ? choice->condition : kNone);
    }
    LayOut();
    Resolve();
  }

 private:
  struct Choice {
    std::uint64_t cost = 0;
    std::vector<Anchor> anchors{};
    std::uint32_t condition = kNone;  // The number of the match's own that they are of.
  };
  struct Filed {
    bool found_by_key;  // Rather than at a place that is known beforehand.
    std::uint64_t key;
    std::uint32_t number;
    friend auto operator<=>(const Filed&, const Filed&) = default;
  };

  static constexpr std::uint64_t kAlways = Mix(0);
  static constexpr std::uint64_t KeyOf(std::uint32_t node, bool rest) {
    return Mix((std::uint64_t{node} << 1) + (rest ? 1 : 0)) + kAlways;
  }

  // How many could be filed under each anchor. Who asks for a value also asks for something to be
  // there.
  void Count(const CompiledMatch& match) {
    for (const Condition& condition : match.conditions()) {
      for (const Anchor& anchor : AnchorsOf(condition)) ++counts_[anchor.key];
      if (condition.asks() == Condition::Asks::kOneOf) {
        ++counts_[PresentKey(SeedOf(condition.attribute()))];
      }
    }
    for (const CompiledMatch& part : match.all()) Count(part);
    for (const CompiledMatch& part : match.any()) Count(part);
  }

  std::optional<Choice> Choose(const CompiledMatch& match) const {
    std::optional<Choice> best;
    const auto offer = [&](std::optional<Choice> choice) {
      if (choice && (!best || choice->cost < best->cost)) best = std::move(choice);
    };
    for (std::uint32_t i = 0; i < match.conditions().size(); ++i) {
      Choice choice{.anchors = AnchorsOf(match.conditions()[i]), .condition = i};
      for (const Anchor& anchor : choice.anchors) {
        choice.cost += std::uint64_t{anchor.weight} * counts_.at(anchor.key);
      }
      if (!choice.anchors.empty()) offer(std::move(choice));
    }
    for (const CompiledMatch& part : match.all()) {
      std::optional<Choice> choice = Choose(part);
      if (choice) choice->condition = kNone;
      offer(std::move(choice));
    }
    if (!match.any().empty()) offer(ChooseForEach(match.any()));
    return best;
  }

  // One of the alternatives must hold, so it is filed under what each of them needs.
  std::optional<Choice> ChooseForEach(const std::vector<CompiledMatch>& alternatives) const {
    Choice together;
    for (const CompiledMatch& part : alternatives) {
      std::optional<Choice> choice = Choose(part);
      if (!choice) return std::nullopt;
      together.cost += choice->cost;
      std::ranges::move(choice->anchors, std::back_inserter(together.anchors));
    }
    return together;
  }

  // Sees to it that requests look there. Whether the condition is sure to hold for those who find
  // it: a value is found by a hash, and for a glob it is enough that there is one.
  bool File(const Anchor& anchor, std::uint32_t number) {
    Filed filed{.found_by_key = true, .key = anchor.key, .number = number};
    bool sure = false;
    switch (anchor.kind) {
      case Anchor::Kind::kValue:
        EntryFor(anchor.condition->attribute()).sizes |= SizeBit(*anchor.value);
        break;
      case Anchor::Kind::kPresent:
        if (anchor.condition->attribute().kind != AttributeKind::kIp) {
          EntryFor(anchor.condition->attribute());
        }
        filed.found_by_key = false;
        sure = anchor.condition->asks() == Condition::Asks::kPresent;
        break;
      case Anchor::Kind::kRange:
        LookForRange(anchor.range->base.is_v4(), anchor.range->prefix);
        break;
      case Anchor::Kind::kPattern: {
        const PathTrie::Place place = index_.trie_.Add(*anchor.pattern);
        filed.found_by_key = false;
        filed.key = KeyOf(place.node, place.rest);
        sure = place.exact;
        break;
      }
      case Anchor::Kind::kLastSegment:
        index_.last_segments_ = true;
        break;
    }
    filed_.push_back(filed);
    return sure;
  }

  std::vector<Entry>& EntriesFor(AttributeKind kind) {
    switch (kind) {
      case AttributeKind::kHeader:
        return index_.headers_.entries;
      case AttributeKind::kCookie:
        return index_.cookies_.entries;
      case AttributeKind::kQuery:
        return index_.query_.entries;
      case AttributeKind::kDescriptor:
        return index_.descriptors_.entries;
      default:
        return index_.plain_;
    }
  }

  Entry& EntryFor(const Attribute& attribute) {
    std::vector<Entry>& entries = EntriesFor(attribute.kind);
    const auto [known, is_new] = entry_of_.try_emplace(ToString(attribute), entries.size());
    if (is_new) entries.push_back({.attribute = attribute, .seed = SeedOf(attribute)});
    return entries[known->second];
  }

  void LookForRange(bool v4, int prefix) {
    const auto same = [&](const RangeLength& length) {
      return length.v4 == v4 && length.prefix == prefix;
    };
    if (std::ranges::any_of(index_.ranges_, same)) return;
    index_.ranges_.push_back({.v4 = v4, .prefix = prefix, .seed = SeedOfRanges(v4, prefix)});
  }

  // Puts the numbers under one key side by side.
  void LayOut() {
    std::ranges::sort(filed_);
    const auto repeated = std::ranges::unique(filed_);
    filed_.erase(repeated.begin(), repeated.end());
    std::vector<std::pair<std::uint64_t, Run>> by_key;
    for (const Filed& filed : filed_) {
      auto& runs = filed.found_by_key ? by_key : placed_;
      if (runs.empty() || runs.back().first != filed.key) {
        runs.push_back({filed.key, {.begin = static_cast<std::uint32_t>(index_.numbers_.size())}});
      }
      index_.numbers_.push_back(filed.number);
      ++runs.back().second.count;
    }
    index_.runs_ = KeyTable<Run>(by_key);
  }

  // Looks up now what does not depend on the request.
  void Resolve() {
    const KeyTable<Run> placed(placed_);
    const auto run_of = [&](std::uint64_t key) {
      const Run* const run = placed.Find(key);
      return run == nullptr ? Run() : *run;
    };
    index_.always_ = run_of(kAlways);
    index_.has_ip_ = run_of(PresentKey(SeedOf({.kind = AttributeKind::kIp})));
    index_.trie_.Finish([&](std::uint32_t node, bool rest) { return run_of(KeyOf(node, rest)); });
    for (Entry& entry : index_.plain_) entry.present = run_of(PresentKey(entry.seed));
    for (NameTable* table :
         {&index_.headers_, &index_.cookies_, &index_.query_, &index_.descriptors_}) {
      std::unordered_map<std::uint64_t, std::uint32_t> first;
      for (std::uint32_t i = 0; i < table->entries.size(); ++i) {
        Entry& entry = table->entries[i];
        entry.present = run_of(PresentKey(entry.seed));
        entry.next = std::exchange(first[HashOfName(entry.attribute.name)], i + 1);
        table->sizes |= SizeBit(entry.attribute.name);
      }
      table->first = KeyTable<std::uint32_t>({first.begin(), first.end()});
    }
  }

  const std::span<const CompiledMatch> matches_;
  MatchIndex& index_;
  std::unordered_map<std::uint64_t, std::uint32_t> counts_;
  std::unordered_map<std::string, std::size_t> entry_of_;
  std::vector<Filed> filed_;
  std::vector<std::pair<std::uint64_t, Run>> placed_;  // Where those are not found by their key.
};

MatchIndex::MatchIndex(std::span<const CompiledMatch> matches) { Builder(matches, *this).Build(); }

void MatchIndex::Find(const Facts& facts, Candidates& found) const noexcept {
  found.Add(always_.Of(numbers_));
  for (const Entry& entry : plain_) {
    const std::string_view value = facts.Get(entry.attribute);
    if (value.empty()) continue;
    AddValue(entry, value, found);
  }
  if (!trie_.empty() || last_segments_) FindByPath(facts.path(), found);
  if ((has_ip_.count != 0 || !ranges_.empty()) && facts.ip()) FindByAddress(*facts.ip(), found);
  const Request& request = facts.request();
  const auto find = [&](const NameTable& table, bool any_case, std::span<const NamedValue> values) {
    if (!table.entries.empty() && !values.empty()) FindByNames(table, any_case, values, found);
  };
  find(headers_, true, request.headers);
  find(cookies_, false, request.cookies);
  find(query_, false, request.query);
  find(descriptors_, false, request.descriptors);
}

void MatchIndex::AddValue(const Entry& entry, std::string_view value,
                          Candidates& found) const noexcept {
  found.Add(entry.present.Of(numbers_));
  if ((entry.sizes & SizeBit(value)) != 0) AddUnder(ValueKey(entry.seed, value), found);
}

void MatchIndex::AddUnder(std::uint64_t key, Candidates& found) const noexcept {
  if (const Run* const run = runs_.Find(key); run != nullptr) found.Add(run->Of(numbers_));
}

void MatchIndex::FindByPath(std::string_view path, Candidates& found) const noexcept {
  if (path.empty()) return;
  if (!trie_.empty()) trie_.Find(path, numbers_, found);
  if (last_segments_) AddUnder(LastSegmentKey(path.substr(path.rfind('/') + 1)), found);
}

void MatchIndex::FindByAddress(const IpAddress& address, Candidates& found) const noexcept {
  found.Add(has_ip_.Of(numbers_));
  for (const RangeLength& length : ranges_) {
    if (length.v4 != address.is_v4()) continue;
    AddUnder(RangeKey(length.seed, address.Masked(length.prefix)), found);
  }
}

const MatchIndex::Entry* MatchIndex::EntryOf(const NameTable& table, bool any_case,
                                             std::string_view name) noexcept {
  if ((table.sizes & SizeBit(name)) == 0) return nullptr;
  const std::uint32_t* const first = table.first.Find(HashOfName(name));
  for (std::uint32_t at = first == nullptr ? 0 : *first; at != 0;) {
    const Entry& entry = table.entries[at - 1];
    const std::string& known = entry.attribute.name;
    if (any_case ? EqualIgnoringCase(known, name) : known == name) return &entry;
    at = entry.next;
  }
  return nullptr;
}

void MatchIndex::FindByNames(const NameTable& table, bool any_case,
                             std::span<const NamedValue> values, Candidates& found) const noexcept {
  SeenEntries seen(table.entries.size());
  for (const NamedValue& value : values) {
    if (value.value.empty()) continue;
    const Entry* const entry = EntryOf(table, any_case, value.name);
    if (entry == nullptr) continue;
    if (!seen.Add(static_cast<std::size_t>(entry - table.entries.data()))) continue;
    AddValue(*entry, value.value, found);
  }
}

}  // namespace weir
