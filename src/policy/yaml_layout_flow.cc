// Reads collections in brackets, where line ends mean little and comments may stand anywhere.
#include <iterator>
#include <utility>

#include "policy/yaml_layout_scan.h"

namespace weir {
namespace {

using Form = YamlLayout::Form;

void Append(YamlRemarks& to, YamlRemarks from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// To the end of the line if that is free, else before what comes next.
void Place(YamlRemark remark, YamlRemark& trailing, YamlRemarks& next) {
  if (remark.empty()) return;
  if (trailing.empty()) {
    trailing = std::move(remark);
  } else {
    next.push_back(std::move(remark));
  }
}

}  // namespace

// Everything up to the next token. Blank lines are dropped.
LayoutScan::Remarks LayoutScan::TakeFlowRemarks() {
  Remarks remarks;
  bool same_line = true;
  while (!AtEnd()) {
    SkipBlanks();
    if (Peek() == '#') {
      YamlRemark remark = TakeComment();
      if (same_line) {
        remarks.same_line = std::move(remark);
      } else {
        remarks.below.push_back(std::move(remark));
      }
    }
    if (!AtLineEnd()) break;
    Skip(1);
    same_line = false;
  }
  return remarks;
}

void LayoutScan::ReadFlow(YamlLayout& flow) {
  const bool in_map = Peek() == '{';
  const char close = in_map ? '}' : ']';
  flow.form = in_map ? Form::kFlowMap : Form::kFlowList;
  Skip(1);
  Remarks remarks = TakeFlowRemarks();
  flow.opening = std::move(remarks.same_line);
  YamlRemarks pending = std::move(remarks.below);
  while (!problem_ && Peek() != close) {
    YamlLayout::Part part{.before = std::exchange(pending, {})};
    ReadFlowPart(part, in_map);
    for (bool again = true; again;) {
      remarks = TakeFlowRemarks();
      Place(std::move(remarks.same_line), part.trailing, pending);
      Append(pending, std::move(remarks.below));
      again = Peek() == ',';
      if (again) Skip(1);
    }
    flow.parts.push_back(std::move(part));
  }
  flow.after = std::move(pending);
  Skip(1);
}

void LayoutScan::ReadFlowPart(YamlLayout::Part& part, bool in_map) {
  TakeFlowAnchor(part);
  ReadFlowNode(part);
  SkipBlanks();
  const bool paired = !problem_ && !AtEnd() && Peek() == ':';
  if (!paired && !in_map) return;
  if (part.value.form != Form::kScalar || part.value.lines.size() != 1 ||
      !part.value.anchor.empty()) {
    return Fail("this key cannot be formatted; write it as one plain text");
  }
  YamlLayout::Part pair{.key = std::move(part.value.lines[0])};
  part.value = {};
  if (paired) {
    Skip(1);
    TakeFlowAnchor(pair);
    const Remarks remarks = TakeFlowRemarks();
    Place(remarks.same_line, part.trailing, part.before);
    Append(part.before, remarks.below);
    if (Peek() != ',' && Peek() != ']' && Peek() != '}') ReadFlowNode(pair);
    Append(part.before, std::move(pair.before));
  }
  if (in_map) {
    part.key = std::move(pair.key);
    part.value = std::move(pair.value);
  } else {
    pair.before.clear();
    part.value.form = Form::kFlowPair;
    part.value.parts.push_back(std::move(pair));
  }
}

void LayoutScan::TakeFlowAnchor(YamlLayout::Part& part) {
  Remarks remarks = TakeFlowRemarks();
  if (!remarks.same_line.empty()) part.before.push_back(std::move(remarks.same_line));
  Append(part.before, std::move(remarks.below));
  if (Peek() != '&') return;
  part.value.anchor = TakeName();
  remarks = TakeFlowRemarks();
  if (!remarks.same_line.empty()) part.before.push_back(std::move(remarks.same_line));
  Append(part.before, std::move(remarks.below));
}

void LayoutScan::ReadFlowNode(YamlLayout::Part& part) {
  const char c = Peek();
  if (AtQuestionMark()) {
    return Fail("a key with \"?\" cannot be formatted; write it as \"key: value\"");
  }
  if (AtEnd() || c == ',' || c == ']' || c == '}') {
    return Fail("an empty item cannot be formatted; write null, or leave it out");
  }
  if (c == '[' || c == '{') return ReadFlow(part.value);
  part.value.form = Form::kScalar;
  part.value.lines = c == '"' || c == '\'' ? TakeQuoted() : TakeFlowPlain();
}

bool LayoutScan::EndsFlowPlain() const noexcept {
  if (IsFlowMark(Peek()) || AtEnd()) return true;
  return Peek() == ':' && (IsBlankOrBreak(Peek(1)) || IsFlowMark(Peek(1)));
}

std::vector<std::string> LayoutScan::TakeFlowPlain() {
  std::vector<std::string> lines;
  std::size_t blank_lines = 0;
  LayoutScan ahead = *this;
  while (true) {
    const std::size_t start = ahead.at_;
    std::size_t end = start;  // Behind the last character that is no blank.
    while (!ahead.AtLineEnd() && !ahead.EndsFlowPlain()) {
      const bool blank = IsBlankOrBreak(ahead.Peek());
      if (ahead.Peek() == '#' && end < ahead.at_) break;
      ahead.Skip(1);
      if (!blank) end = ahead.at_;
    }
    lines.insert(lines.end(), blank_lines, "");
    lines.emplace_back(text_.substr(start, end - start));
    at_ = end;
    if (!ahead.AtLineEnd() || ahead.AtEnd()) return lines;

    ahead.Skip(1);
    for (blank_lines = 0; !ahead.AtEnd(); ++blank_lines) {
      ahead.SkipBlanks();
      if (!ahead.AtLineEnd()) break;
      ahead.Skip(1);
    }
    if (ahead.EndsFlowPlain() || ahead.Peek() == '#') return lines;
  }
}

}  // namespace weir
