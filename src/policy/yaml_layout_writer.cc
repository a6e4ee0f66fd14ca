// Writes a layout in the form that is the same for all texts.
#include <algorithm>
#include <utility>

#include "policy/yaml_layout.h"

namespace weir {
namespace {

using Form = YamlLayout::Form;
using Part = YamlLayout::Part;

constexpr std::size_t kMaxColumns = 100;
constexpr std::size_t kIndent = 2;
constexpr std::size_t kBeforeComment = 2;

std::size_t WidthOf(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string Spaces(std::size_t count) { return std::string(count, ' '); }

std::size_t IndentOf(std::string_view text) {
  return std::min(text.find_first_not_of(' '), text.size());
}

bool IsFlow(Form form) {
  return form == Form::kFlowMap || form == Form::kFlowList || form == Form::kFlowPair;
}
bool IsList(Form form) { return form == Form::kBlockList || form == Form::kFlowList; }

// A comment, or a scalar of several lines: it cannot be written on one line.
bool NeedsLines(const YamlLayout& node) {
  if (node.lines.size() > 1 || !node.opening.empty() || !node.after.empty()) return true;
  return std::ranges::any_of(node.parts, [](const Part& part) {
    return !part.before.empty() || !part.trailing.empty() || NeedsLines(part.value);
  });
}

std::string OnOneLine(const YamlLayout& node);

std::string OnOneLine(const Part& part) {
  std::string value = part.value.anchor;
  if (part.value.form != Form::kEmpty) {
    value += (value.empty() ? "" : " ") + OnOneLine(part.value);
  }
  if (part.key.empty()) return value;
  return value.empty() ? part.key : part.key + ": " + value;
}

std::string OnOneLine(const YamlLayout& node) {
  if (node.form == Form::kScalar) return node.lines[0];
  if (node.form == Form::kFlowPair) {
    const Part& part = node.parts[0];
    const bool bare = part.value.form == Form::kEmpty && part.value.anchor.empty();
    return bare ? part.key + ": " : OnOneLine(part);
  }
  std::string text;
  for (const Part& part : node.parts) text += (text.empty() ? "" : ", ") + OnOneLine(part);
  if (node.form == Form::kFlowList) return "[" + text + "]";
  return text.empty() ? "{}" : "{ " + text + " }";
}

class LayoutWriter {
 public:
  std::string Write(const YamlPage& page) {
    AddRemarks(page.header, 0, true);
    if (page.marked) AddLine("---", page.marked_trailing);
    WriteRoot(page.root);
    AddRemarks(page.footer, 0, true);
    while (!lines_.empty() && lines_.back().gap) lines_.pop_back();
    AlignComments();
    return Joined();
  }

 private:
  struct Line {
    std::string text;
    YamlRemark comment{};
    std::size_t comment_column = 0;
    bool gap = false;  // A blank line that means nothing, unlike one within a scalar.
  };

  void AddLine(std::string text, const YamlRemark& comment = {}) {
    lines_.push_back({std::move(text), comment});
  }

  void AddRemark(const YamlRemark& remark, std::size_t indent) {
    if (!remark.empty()) AddLine(Spaces(indent) + remark.text);
  }

  void AddRemarks(const YamlRemarks& remarks, std::size_t indent, bool with_blank_lines) {
    for (const YamlRemark& remark : remarks) {
      if (!remark.empty()) {
        AddRemark(remark, indent);
      } else if (with_blank_lines && !lines_.empty() && !lines_.back().gap) {
        lines_.push_back({.text = "", .gap = true});
      }
    }
  }

  void WriteRoot(const Part& root) {
    AddRemarks(root.before, 0, true);
    const bool block = root.value.form == Form::kBlockMap || root.value.form == Form::kBlockList;
    if (block && root.value.anchor.empty()) {
      AddRemark(root.trailing, 0);
      WriteParts(root.value, 0, "");
      return;
    }
    WriteValue("", root, 0, false);
  }

  // `lead` is what stands before the first part on its line: blanks, or the dashes it belongs to.
  void WriteParts(const YamlLayout& node, std::size_t indent, const std::string& lead) {
    const bool shared = IndentOf(lead) < lead.size();
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      const Part& part = node.parts[i];
      if (i > 0) {
        AddRemarks(part.before, indent, true);
      } else {
        AddFirstRemarks(part.before, shared ? IndentOf(lead) : indent, !shared);
      }
      const std::string start = i == 0 && shared ? lead : Spaces(indent);
      const bool in_list = IsList(node.form);
      WriteValue(start + (in_list ? "-" : part.key + ":"), part, indent, in_list);
    }
    AddRemarks(node.after, indent, true);
  }

  // No blank line between a key and what belongs to it.
  void AddFirstRemarks(const YamlRemarks& remarks, std::size_t indent, bool with_blank_lines) {
    const auto first =
        std::ranges::find_if(remarks, [](const YamlRemark& remark) { return !remark.empty(); });
    AddRemarks(YamlRemarks(first, remarks.end()), indent, with_blank_lines);
  }

  void WriteValue(std::string text, const Part& part, std::size_t indent, bool in_list) {
    const YamlLayout& value = part.value;
    if (!value.anchor.empty()) text += (text.empty() ? "" : " ") + value.anchor;
    if (value.form == Form::kEmpty) {
      AddLine(std::move(text), part.trailing);
      AddRemarks(part.below, indent + kIndent, true);
    } else if (value.form == Form::kScalar) {
      WriteScalar(std::move(text), part, indent);
    } else if (value.form == Form::kBlockScalar) {
      WriteBlockScalar(text, part, indent);
    } else if (!WriteFlow(text, part)) {
      WriteBlock(std::move(text), part, indent, in_list);
    }
  }

  static std::string Followed(const std::string& text, const std::string& by) {
    return text.empty() ? by : text + " " + by;
  }

  void WriteScalar(std::string text, const Part& part, std::size_t indent) {
    text = Followed(text, part.value.lines[0]);
    for (std::size_t i = 1; i < part.value.lines.size(); ++i) {
      AddLine(std::move(text));
      const std::string& line = part.value.lines[i];
      text = line.empty() ? "" : Spaces(indent + kIndent) + line;
    }
    AddLine(std::move(text), part.trailing);
  }

  void WriteBlockScalar(const std::string& text, const Part& part, std::size_t indent) {
    AddLine(Followed(text, part.value.lines[0]), part.trailing);
    for (std::size_t i = 1; i < part.value.lines.size(); ++i) {
      const std::string& line = part.value.lines[i];
      AddLine(line.empty() ? "" : Spaces(indent + kIndent) + line);
    }
  }

  // On one line, if it was in brackets and may stay there.
  bool WriteFlow(const std::string& text, const Part& part) {
    const YamlLayout& value = part.value;
    if (!IsFlow(value.form)) return false;
    if (value.parts.empty()) {  // Nothing to write as a block, so comments within move before it.
      AddRemark(value.opening, IndentOf(text));
      AddRemarks(value.after, IndentOf(text), false);
    } else if (NeedsLines(value)) {
      return false;
    }
    std::string line = Followed(text, OnOneLine(value));
    if (WidthOf(line) > kMaxColumns && !value.parts.empty()) return false;
    AddLine(std::move(line), part.trailing);
    return true;
  }

  void WriteBlock(std::string text, const Part& part, std::size_t indent, bool in_list) {
    const YamlLayout& value = part.value;
    const bool two = !value.opening.empty() && !part.trailing.empty();
    const std::size_t below = text.empty() ? 0 : indent + kIndent;
    const YamlRemark& head = value.opening.empty() ? part.trailing : value.opening;
    if (text.empty()) {  // The document itself.
      AddRemark(head, 0);
      WriteParts(value, 0, "");
    } else if (in_list && value.anchor.empty()) {
      AddRemark(head, IndentOf(text));
      WriteParts(value, below, text + " ");
    } else {
      AddLine(std::move(text), head);
      WriteParts(value, below, Spaces(below));
    }
    if (two) AddRemark(part.trailing, below);
  }

  // Comments of neighbouring lines that stood in one column stay in one.
  void AlignComments() {
    for (std::size_t begin = 0; begin < lines_.size();) {
      std::size_t end = begin;
      std::size_t width = 0;
      while (end < lines_.size() && !lines_[end].comment.empty() &&
             lines_[end].comment.column == lines_[begin].comment.column) {
        width = std::max(width, WidthOf(lines_[end].text));
        ++end;
      }
      const bool apart = width + kBeforeComment > kMaxColumns;
      for (std::size_t i = begin; i < end; ++i) {
        lines_[i].comment_column = (apart ? WidthOf(lines_[i].text) : width) + kBeforeComment;
      }
      begin = std::max(end, begin + 1);
    }
  }

  std::string Joined() const {
    std::string text;
    for (const Line& line : lines_) {
      text += line.text;
      if (!line.comment.empty()) {
        text += Spaces(line.comment_column - WidthOf(line.text)) + line.comment.text;
      }
      text += '\n';
    }
    return text;
  }

  std::vector<Line> lines_{};
};

}  // namespace

std::string WriteLayout(const YamlPage& page) { return LayoutWriter().Write(page); }

}  // namespace weir
