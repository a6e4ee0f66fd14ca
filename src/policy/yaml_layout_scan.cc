#include "policy/yaml_layout_scan.h"

#include <utility>

#include "policy/yaml_source.h"

namespace weir {
namespace {

using Form = YamlLayout::Form;

std::string_view WithoutTrailingBlanks(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

std::string_view WithoutLeadingBlanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

// The lines of a quoted scalar. Blanks around line ends mean nothing, unless they are escaped.
std::vector<std::string> LinesOf(std::string_view raw) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = raw.find('\n');
    std::string_view line = raw.substr(0, end);
    if (!lines.empty()) line = WithoutLeadingBlanks(line);
    if (end == std::string_view::npos) {
      lines.emplace_back(line);
      return lines;
    }
    const std::string_view trimmed = WithoutTrailingBlanks(line);
    lines.emplace_back(trimmed.ends_with('\\') ? line : trimmed);
    raw.remove_prefix(end + 1);
  }
}

}  // namespace

bool LayoutScan::AtDash() const noexcept { return Peek() == '-' && IsBlankOrBreak(Peek(1)); }

bool LayoutScan::AtQuestionMark() const noexcept {
  return Peek() == '?' && IsBlankOrBreak(Peek(1));
}

std::size_t LayoutScan::Column() const { return at_ - (text_.substr(0, at_).rfind('\n') + 1); }

void LayoutScan::SkipBlanks() {
  while (!AtEnd() && IsBlank(Peek())) ++at_;
}

void LayoutScan::Fail(std::string message) {
  if (!problem_) {
    problem_ = {YamlProblem::Kind::kSyntax, YamlSource(text_).PlaceOf(at_), std::move(message)};
  }
  at_ = text_.size();
}

YamlRemark LayoutScan::TakeComment() {
  const std::size_t start = at_ - Column();
  const auto column = std::count_if(text_.begin() + static_cast<std::ptrdiff_t>(start),
                                    text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                    [](char c) { return (c & 0xC0) != 0x80; });
  const std::string_view text = rest().substr(0, rest().find('\n'));
  Skip(text.size());
  return {std::string(WithoutTrailingBlanks(text)), static_cast<std::size_t>(column)};
}

YamlRemark LayoutScan::FinishLine() {
  SkipBlanks();
  YamlRemark remark;
  if (Peek() == '#') remark = TakeComment();
  if (!AtLineEnd()) Fail("what follows here on the line cannot be formatted");
  Skip(1);
  return remark;
}

void LayoutScan::CollectRemarks(YamlRemarks& remarks) {
  while (!AtEnd()) {
    SkipBlanks();
    if (AtLineEnd()) {
      const bool repeated = !remarks.empty() && remarks.back().empty();
      if (!repeated) remarks.push_back({});
    } else if (Peek() == '#') {
      remarks.push_back(TakeComment());
    } else {
      return;
    }
    Skip(1);
  }
}

std::string LayoutScan::TakeName() {
  const std::size_t start = at_;
  while (!AtEnd() && !IsBlankOrBreak(Peek()) && !IsFlowMark(Peek())) ++at_;
  return std::string(text_.substr(start, at_ - start));
}

std::size_t LayoutScan::EndOfQuoted(std::size_t start) const {
  const char quote = text_[start];
  for (std::size_t i = start + 1; i < text_.size(); ++i) {
    if (quote == '"' && text_[i] == '\\') {
      ++i;
    } else if (text_[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text_.size() && text_[i + 1] == quote;
      if (!doubled) return i + 1;
      ++i;
    }
  }
  return text_.size();
}

std::optional<KeySpan> LayoutScan::FindKey() const {
  const char first = Peek();
  if (IsFlowMark(first) || std::string_view("|>*&").contains(first)) return std::nullopt;
  const std::string_view line = rest().substr(0, rest().find('\n'));
  std::size_t i = 0;
  if (first == '"' || first == '\'') {
    i = EndOfQuoted(at_) - at_;
    while (i < line.size() && IsBlank(line[i])) ++i;
    if (i >= line.size() || line[i] != ':') return std::nullopt;
  }
  for (; i < line.size(); ++i) {
    if (line[i] == '#' && i > 0 && IsBlank(line[i - 1])) return std::nullopt;
    if (line[i] == ':' && (i + 1 == line.size() || IsBlank(line[i + 1]))) {
      return KeySpan{std::string(WithoutTrailingBlanks(line.substr(0, i))), i + 1};
    }
  }
  return std::nullopt;
}

std::vector<std::string> LayoutScan::TakeQuoted() {
  const std::size_t end = EndOfQuoted(at_);
  const std::string_view raw = text_.substr(at_, end - at_);
  at_ = end;
  return LinesOf(raw);
}

// Goes on over lines that are indented further than the parent, up to a comment.
std::vector<std::string> LayoutScan::TakePlain(int parent_column) {
  std::vector<std::string> lines;
  std::size_t blank_lines = 0;
  LayoutScan ahead = *this;
  while (true) {
    const std::string_view line = ahead.rest().substr(0, ahead.rest().find('\n'));
    std::size_t size = 0;
    while (size < line.size() && !(line[size] == '#' && size > 0 && IsBlank(line[size - 1]))) {
      ++size;
    }
    const std::string_view text = WithoutTrailingBlanks(line.substr(0, size));
    lines.insert(lines.end(), blank_lines, "");
    lines.emplace_back(text);
    at_ = ahead.at_ + text.size();
    ahead.Skip(line.size() + 1);
    if (size < line.size()) return lines;

    for (blank_lines = 0; !ahead.AtEnd(); ++blank_lines) {
      ahead.SkipBlanks();
      if (!ahead.AtLineEnd()) break;
      ahead.Skip(1);
    }
    if (ahead.AtEnd() || ahead.Peek() == '#') return lines;
    if (static_cast<int>(ahead.Column()) <= parent_column) return lines;
  }
}

BlockHeader LayoutScan::TakeBlockHeader() {
  BlockHeader header{.text = std::string(1, Peek())};
  Skip(1);
  for (; !AtEnd() && !IsBlankOrBreak(Peek()) && Peek() != '#'; Skip(1)) {
    if (Peek() >= '1' && Peek() <= '9') {
      header.indent = Peek() - '0';
    } else {
      header.keep = Peek() == '+';
      header.text += Peek();
    }
  }
  return header;
}

BlockContent LayoutScan::TakeBlockContent(int parent_column, const BlockHeader& header) {
  BlockContent content;
  const auto least = static_cast<std::size_t>(parent_column + std::max(header.indent, 1));
  std::optional<std::size_t> indent;
  if (header.indent != 0) indent = least;
  std::size_t end = at_;        // Behind the content.
  std::size_t blank_lines = 0;  // At the end of the content.
  while (!AtEnd()) {
    const std::string_view line = rest().substr(0, rest().find('\n'));
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    const bool blank = spaces == line.size() && (!indent || spaces <= *indent);
    if (!blank && !indent) indent = std::max(spaces, least);
    if (!blank && spaces < *indent) break;
    content.lines.emplace_back(blank ? "" : line.substr(*indent));
    content.open_ended = at_ + line.size() == text_.size();
    Skip(line.size() + 1);
    blank_lines = blank ? blank_lines + 1 : 0;
    if (!blank || header.keep) end = at_;
  }
  // A blank line without a line end adds nothing; nor do all those at the end, if not kept.
  if (header.keep) blank_lines = std::min<std::size_t>(blank_lines, content.open_ended ? 1 : 0);
  content.lines.resize(content.lines.size() - blank_lines);
  content.open_ended = content.open_ended && blank_lines == 0;
  at_ = end;
  return content;
}

}  // namespace weir
