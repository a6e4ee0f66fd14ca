#include "policy/yaml_builder.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

namespace weir {
namespace {

using NodeKind = YamlNode::Kind;
using YamlProblemKind = YamlProblem::Kind;

// Below this, comparing every key with those before it is the cheaper way.
constexpr std::size_t kFewKeys = 12;
constexpr std::size_t kQuotedBytes = 60;

std::string QuotedKey(std::string_view text) {
  if (text.size() <= kQuotedBytes) return "\"" + std::string(text) + "\"";
  std::size_t end = kQuotedBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return "\"" + std::string(text.substr(0, end)) + "...\"";
}

std::string Said(YamlPlace place) {
  return "line " + std::to_string(place.line) + ", column " + std::to_string(place.column);
}

bool IsCollection(NodeKind kind) { return kind == NodeKind::kList || kind == NodeKind::kMap; }

bool Precedes(const YamlProblem& a, const YamlProblem& b) {
  return std::tie(a.place.line, a.place.column, a.kind) <
         std::tie(b.place.line, b.place.column, b.kind);
}

YamlNode NodeOf(NodeKind kind, YamlPlace place) {
  YamlNode node;
  node.kind = kind;
  node.place = place;
  return node;
}

}  // namespace

void YamlBuilder::Report(YamlProblemKind kind, YamlPlace place, std::string message) {
  if (stopped_) return;
  problems_.push_back({kind, place, std::move(message)});
  stopped_ = kind == YamlProblemKind::kTooLarge || kind == YamlProblemKind::kSyntax ||
             kind == YamlProblemKind::kSeveral || problems_.size() >= kMaxYamlProblems;
}

void YamlBuilder::Count(std::size_t nodes, std::size_t bytes, YamlPlace place) {
  nodes_ += nodes;
  bytes_ += bytes;
  if (nodes_ > kMaxYamlNodes) {
    Report(YamlProblemKind::kTooLarge, place,
           "more than " + std::to_string(kMaxYamlNodes) + " values and keys; split the document");
  }
}

// What holds of every node, before it is known what it is for. False: leave it alone.
bool YamlBuilder::Admit(const YamlMark& mark) {
  if (stopped_) return false;
  if (mark.tagged) {
    Report(YamlProblemKind::kTag, source_.PlaceOf(mark.offset),
           "tags such as \"!name\" are not supported; leave the tag out, or put the text into "
           "quotes");
  }
  if (!stopped_ && (open_.empty() || !open_.back().flow) && source_.IsIndentedByTab(mark.offset)) {
    Report(YamlProblemKind::kSyntax, source_.PlaceOf(mark.offset),
           "a tab cannot indent in YAML; use spaces");
  }
  return !stopped_;
}

bool YamlBuilder::AwaitsKey() const noexcept {
  return !open_.empty() && open_.back().node.kind == NodeKind::kMap && !open_.back().has_key;
}

void YamlBuilder::AddNull(const YamlMark& mark) {
  if (!Admit(mark)) return;
  CheckColon(mark.offset);
  YamlNode node = NodeOf(NodeKind::kNull, PlaceOfNull(mark.offset));
  if (open_.empty()) root_is_empty_ = !IsWrittenNull(mark.offset);
  Count(1, 0, node.place);
  AddNode(mark, std::move(node));
}

void YamlBuilder::AddScalar(const YamlMark& mark, std::string text, bool quoted) {
  if (!Admit(mark)) return;
  if (!AwaitsKey()) CheckIndentation(mark.offset, false);
  YamlNode node = NodeOf(NodeKind::kScalar, source_.PlaceOf(mark.offset));
  Count(1, text.size(), node.place);
  node.text = std::move(text);
  node.quoted = quoted;
  AddNode(mark, std::move(node));
}

void YamlBuilder::AddAlias(std::size_t offset, std::size_t anchor) {
  if (!Admit({.offset = offset})) return;
  const YamlPlace place = source_.PlaceOf(offset);
  if (AwaitsKey()) {
    Report(YamlProblemKind::kKey, place, "an alias cannot be a key; write the key out");
    AddNode({}, NodeOf(NodeKind::kScalar, place));
    return;
  }
  CheckIndentation(offset, false);
  const auto found = anchors_.find(anchor);
  // An anchor that is not known stood at a key, which was reported.
  if (found != anchors_.end()) {
    const Anchor& meant = found->second;
    copied_nodes_ += meant.nodes;
    copied_bytes_ += meant.bytes;
    if (!meant.complete) {
      Report(YamlProblemKind::kAlias, place,
             "this alias stands within what it stands for; write it out");
    } else if (open_.size() + meant.levels > static_cast<std::size_t>(kMaxYamlDepth)) {
      Report(YamlProblemKind::kTooLarge, place,
             "with this alias there are more than " + std::to_string(kMaxYamlDepth) +
                 " levels; write the document flatter");
    } else if (copied_nodes_ > kMaxYamlCopiedNodes || copied_bytes_ > kMaxYamlCopiedBytes) {
      Report(YamlProblemKind::kAlias, place,
             "the aliases up to here stand for too much text; use fewer of them");
      stopped_ = true;
    } else {
      Count(meant.nodes, meant.bytes, place);
      if (!open_.empty()) {
        open_.back().deepest = std::max(open_.back().deepest, open_.size() + meant.levels);
      }
      aliases_.push_back({NextPath(), anchor, place});
    }
  }
  AddNode({}, NodeOf(NodeKind::kNull, place));
}

void YamlBuilder::Open(const YamlMark& mark, NodeKind kind) {
  if (!Admit(mark)) return;
  const YamlPlace place = source_.PlaceOf(mark.offset);
  if (open_.size() >= static_cast<std::size_t>(kMaxYamlDepth)) {
    Report(YamlProblemKind::kTooLarge, place,
           "more than " + std::to_string(kMaxYamlDepth) +
               " levels of lists and maps; write the document flatter");
    return;
  }
  if (!AwaitsKey()) CheckIndentation(mark.offset, kind == NodeKind::kList && !mark.flow);
  if (mark.anchor != 0 && !AwaitsKey()) anchors_[mark.anchor] = {.path = NextPath()};
  const char first = source_.At(mark.offset);
  const bool before_it = mark.flow || first == '&' || first == '!';
  open_.push_back({.node = NodeOf(kind, place),
                   .flow = mark.flow,
                   .column = before_it ? kNoColumn : source_.ColumnOf(mark.offset),
                   .anchor = mark.anchor,
                   .nodes_before = nodes_,
                   .bytes_before = bytes_,
                   .deepest = open_.size() + 1});
  Count(1, 0, place);
}

void YamlBuilder::Close() {
  if (stopped_ || open_.empty()) return;
  Frame frame = std::move(open_.back());
  open_.pop_back();
  if (frame.node.kind == NodeKind::kMap) CheckDuplicates(frame.node);
  if (!open_.empty()) open_.back().deepest = std::max(open_.back().deepest, frame.deepest);
  if (const auto found = anchors_.find(frame.anchor); found != anchors_.end()) {
    Anchor& anchor = found->second;
    anchor.nodes = nodes_ - frame.nodes_before;
    anchor.bytes = bytes_ - frame.bytes_before;
    anchor.levels = frame.deepest - open_.size();
    anchor.complete = true;
  }
  AddNode({.offset = 0, .flow = frame.flow}, std::move(frame.node));
}

// Puts a complete node where it belongs.
void YamlBuilder::AddNode(const YamlMark& mark, YamlNode node) {
  if (stopped_) return;
  if (AwaitsKey()) return AddKey(mark, std::move(node));
  if (mark.anchor != 0) {
    anchors_[mark.anchor] = {
        .path = NextPath(), .nodes = 1, .bytes = node.text.size(), .complete = true};
  }
  if (open_.empty()) {
    root_ = std::move(node);
    return;
  }
  Frame& frame = open_.back();
  if (frame.node.kind == NodeKind::kList) {
    frame.node.items.push_back(std::move(node));
    return;
  }
  frame.node.entries.push_back({std::move(frame.key), frame.key_place, std::move(node)});
  frame.has_key = false;
}

void YamlBuilder::AddKey(const YamlMark& mark, YamlNode key) {
  Frame& frame = open_.back();
  frame.has_key = true;
  frame.key_place = key.place;
  frame.key_offset = mark.offset;
  if (IsCollection(key.kind)) {
    Report(YamlProblemKind::kKey, key.place,
           "a list or a map cannot be a key; a key is a plain text");
  } else if (key.kind == NodeKind::kNull) {
    Report(YamlProblemKind::kKey, key.place,
           "a key is missing here, or reads as null; write a key, in quotes if it is called null");
  } else if (mark.anchor != 0) {
    Report(YamlProblemKind::kKey, key.place,
           "an anchor cannot stand before a key; put it behind the colon");
  } else if (key.text == "<<" && !key.quoted) {
    Report(YamlProblemKind::kKey, key.place, "merge keys are not supported; write the keys out");
  }
  frame.key = std::move(key.text);
}

// The parser lets a value stand below its key without indentation.
void YamlBuilder::CheckIndentation(std::size_t offset, bool block_list) {
  if (open_.empty()) return;
  const Frame& frame = open_.back();
  if (frame.node.kind != NodeKind::kMap || frame.flow || frame.column == kNoColumn) return;
  const std::size_t column = source_.ColumnOf(offset);
  if (column > frame.column || (block_list && column == frame.column)) return;
  const YamlPlace place = source_.PlaceOf(offset);
  if (place.line == frame.key_place.line) return;
  Report(YamlProblemKind::kSyntax, place,
         "this stands below the key " + QuotedKey(frame.key) + " (line " +
             std::to_string(frame.key_place.line) + ") and must be indented further than it");
}

// The parser takes a last line without a colon for a key, and gives it an empty value where the key
// is.
void YamlBuilder::CheckColon(std::size_t offset) {
  if (open_.empty() || open_.back().flow || !open_.back().has_key) return;
  const Frame& frame = open_.back();
  if (offset != frame.key_offset) return;
  Report(
      YamlProblemKind::kSyntax, frame.key_place,
      "this is no \"key: value\" of the map it stands in; add a colon and a blank behind the key, "
      "or check the indentation");
}

void YamlBuilder::CheckDuplicates(const YamlNode& map) {
  const std::vector<YamlNode::Entry>& entries = map.entries;
  if (entries.size() <= kFewKeys) {
    for (std::size_t i = 1; i < entries.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (entries[i].key != entries[j].key) continue;
        ReportDuplicate(entries[j], entries[i]);
        break;
      }
    }
    return;
  }
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});  // NOLINT(modernize-use-ranges): g++ 12
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const int compared = entries[a].key.compare(entries[b].key);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::size_t first = order[0];
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (entries[order[i]].key == entries[first].key) {
      ReportDuplicate(entries[first], entries[order[i]]);
    } else {
      first = order[i];
    }
  }
}

void YamlBuilder::ReportDuplicate(const YamlNode::Entry& first, const YamlNode::Entry& again) {
  const bool is_no_key = std::ranges::any_of(problems_, [&](const auto& problem) {
    return problem.kind == YamlProblemKind::kKey && problem.place == again.place;
  });
  if (is_no_key) return;
  Report(YamlProblemKind::kDuplicateKey, again.place,
         "the key " + QuotedKey(again.key) + " is there already at " + Said(first.place) +
             "; keep one of them");
}

// The parser's place of an empty node is that of whatever comes next, which may even be a key
// called null.
bool YamlBuilder::IsWrittenNull(std::size_t offset) const {
  constexpr std::array<std::string_view, 6> kStarts = {"~", "null", "Null", "NULL", "&", "!"};
  const std::string_view rest = source_.text().substr(std::min(offset, source_.text().size()));
  const bool like_one =
      std::ranges::any_of(kStarts, [&](std::string_view start) { return rest.starts_with(start); });
  if (!like_one || open_.empty()) return like_one;
  const Frame& frame = open_.back();
  return frame.flow || frame.column == kNoColumn || source_.ColumnOf(offset) > frame.column;
}

YamlPlace YamlBuilder::PlaceOfNull(std::size_t offset) {
  if (open_.empty() || AwaitsKey() || IsWrittenNull(offset)) return source_.PlaceOf(offset);
  const Frame& frame = open_.back();
  if (frame.node.kind == NodeKind::kMap) return frame.key_place;
  if (frame.flow || frame.column == kNoColumn) return source_.PlaceOf(offset);
  const std::optional<std::size_t> dash = FindDash(offset, frame.column);
  return dash ? source_.PlaceOf(*dash) : frame.node.place;
}

// The dash of an empty item: between it and what comes next are only blanks and comments.
std::optional<std::size_t> YamlBuilder::FindDash(std::size_t before, std::size_t column) const {
  before = std::min(before, source_.text().size());
  for (std::size_t line = source_.LineOf(before) + 1; line-- > 0;) {
    const std::size_t start = source_.StartOfLine(line);
    const std::size_t dash = start + column;
    const std::size_t text = source_.text().find_first_not_of(" \t\r", start);
    if (text == std::string_view::npos || source_.At(text) == '\n' || source_.At(text) == '#') {
      continue;
    }
    if (dash < before && source_.LineOf(dash) == line && source_.At(dash) == '-') return dash;
    if (text < before) return std::nullopt;
  }
  return std::nullopt;
}

// The way to the node that is about to be added.
YamlBuilder::Path YamlBuilder::NextPath() const {
  Path path;
  for (const Frame& frame : open_) {
    path.push_back(frame.node.kind == NodeKind::kList ? frame.node.items.size()
                                                      : frame.node.entries.size());
  }
  return path;
}

YamlNode* YamlBuilder::At(const Path& path) {
  YamlNode* node = &*root_;
  for (const std::size_t index : path) {
    node = node->kind == NodeKind::kList ? &node->items[index] : &node->entries[index].value;
  }
  return node;
}

// In the order of the text: an anchor holds only aliases that come before those which mean it.
void YamlBuilder::ReplaceAliases() {
  for (const Alias& alias : aliases_) {
    YamlNode copy = *At(anchors_[alias.anchor].path);
    copy.place = alias.place;
    *At(alias.path) = std::move(copy);
  }
}

YamlReport YamlBuilder::Finish() {
  if (problems_.empty() && (!root_ || root_is_empty_)) {
    Report(YamlProblemKind::kNoDocument, {}, "there is nothing here but blanks and comments");
  }
  if (stopped_ && problems_.size() < kMaxYamlProblems) {
    stopped_ = false;
    for (const Frame& frame : open_) CheckDuplicates(frame.node);
  }
  if (!problems_.empty()) {
    std::ranges::sort(problems_, Precedes);
    return {.root = std::nullopt, .problems = std::move(problems_)};
  }
  ReplaceAliases();
  return {.root = std::move(root_), .problems = {}};
}

}  // namespace weir
