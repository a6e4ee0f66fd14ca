// Reads the layout of a text. It is known to be well-formed, so this looks only for what tells the
// parts from one another.
#include <algorithm>
#include <iterator>
#include <optional>

#include "policy/yaml_layout.h"
#include "policy/yaml_layout_scan.h"

namespace weir {
namespace {

using Form = YamlLayout::Form;
using Part = YamlLayout::Part;

class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : scan_(text) {}

  std::expected<YamlPage, YamlProblem> Read() {
    YamlPage page;
    scan_.CollectRemarks(pending_);
    if (scan_.rest().starts_with("---")) {
      page.marked = true;
      page.header = Taken();
      scan_.Skip(3);
      page.marked_trailing = FinishLine();
    }
    root_column_ = Column();
    ReadNode(page.root, kNoParent, {});
    page.footer = Taken();
    if (!scan_.AtEnd()) scan_.Fail("this cannot be formatted; write it in a simpler way");
    if (scan_.problem()) return std::unexpected(*scan_.problem());
    return page;
  }

 private:
  static constexpr int kNoParent = -1;

  int Column() const { return static_cast<int>(scan_.Column()); }
  // Of what comes next; the end of the text ends all but the outermost collection.
  int NextColumn() const { return scan_.AtEnd() ? root_column_ : Column(); }

  YamlRemarks Taken() { return std::exchange(pending_, {}); }

  YamlRemark FinishLine() {
    YamlRemark trailing = scan_.FinishLine();
    scan_.CollectRemarks(pending_);
    return trailing;
  }

  // Remarks that stand at `column` or deeper belong to what ends here, if they are deeper than what
  // comes next.
  void TakeDeeper(YamlRemarks& to, int column) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (pending_[i].empty()) continue;
      const int remark = static_cast<int>(pending_[i].column);
      if (remark < column || remark <= NextColumn()) break;
      count = i + 1;
    }
    const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(count);
    to.insert(to.end(), pending_.begin(), end);
    pending_.erase(pending_.begin(), end);
  }

  // A list may stand at the column of the key it belongs to.
  bool IsBelow(int parent, bool in_map) const {
    if (scan_.AtEnd()) return false;
    return Column() > parent || (in_map && Column() == parent && scan_.AtDash());
  }

  // Behind a colon or a dash.
  void ReadValue(Part& part, int parent, bool in_map) {
    scan_.SkipBlanks();
    YamlRemark head;
    while (true) {
      if (scan_.AtLineEnd() || scan_.Peek() == '#') {
        KeepHead(part, head, FinishLine());
        if (!IsBelow(parent, in_map)) {
          part.trailing = std::move(head);
          TakeDeeper(part.below, parent + 1);
          return;
        }
      }
      if (scan_.Peek() != '&' || !part.value.anchor.empty()) break;
      part.value.anchor = scan_.TakeName();
      scan_.SkipBlanks();
    }
    ReadNode(part, parent, std::move(head));
  }

  // Only one comment can stand behind a key.
  static void KeepHead(Part& part, YamlRemark& head, YamlRemark next) {
    if (next.empty()) return;
    if (!head.empty()) part.before.push_back(std::move(head));
    head = std::move(next);
  }

  void ReadNode(Part& part, int parent, YamlRemark head) {
    if (scan_.problem() || scan_.AtEnd()) return;
    if (parent == kNoParent && scan_.Peek() == '&' && part.value.anchor.empty()) {
      return ReadValue(part, parent, false);
    }
    if (scan_.AtQuestionMark()) return FailAtQuestionMark();
    if (scan_.AtDash()) {
      part.trailing = std::move(head);
      return ReadList(part.value);
    }
    if (scan_.FindKey()) {
      part.trailing = std::move(head);
      return ReadMap(part.value);
    }
    const YamlRemarks between = Taken();
    ReadLeaf(part, parent);
    if (part.trailing.empty()) {
      part.trailing = std::move(head);
    } else if (!head.empty()) {
      part.before.push_back(std::move(head));
    }
    // The value moves up to its key, so these move before the key.
    std::ranges::copy_if(between, std::back_inserter(part.before),
                         [](const YamlRemark& remark) { return !remark.empty(); });
  }

  void FailAtQuestionMark() {
    scan_.Fail("a key with \"?\" cannot be formatted; write it as \"key: value\"");
  }

  void ReadLeaf(Part& part, int parent) {
    const char c = scan_.Peek();
    if (c == '|' || c == '>') {
      ReadBlockScalar(part, parent);
      return;
    }
    if (c == '[' || c == '{') {
      scan_.ReadFlow(part.value);
    } else {
      part.value.form = Form::kScalar;
      part.value.lines = c == '"' || c == '\'' ? scan_.TakeQuoted() : scan_.TakePlain(parent);
    }
    part.trailing = FinishLine();
  }

  void ReadMap(YamlLayout& map) {
    map.form = Form::kBlockMap;
    const int column = Column();
    do {
      Part part{.before = Taken()};
      if (scan_.AtQuestionMark()) return FailAtQuestionMark();
      const std::optional<KeySpan> key = scan_.FindKey();
      if (!key) return scan_.Fail("this key cannot be formatted; write it as \"key: value\"");
      part.key = key->text;
      scan_.Skip(key->size);
      ReadValue(part, column, true);
      map.parts.push_back(std::move(part));
    } while (!scan_.problem() && !scan_.AtEnd() && Column() == column && !scan_.AtDash());
    TakeDeeper(map.after, column);
  }

  void ReadList(YamlLayout& list) {
    list.form = Form::kBlockList;
    const int column = Column();
    do {
      Part part{.before = Taken()};
      scan_.Skip(1);
      ReadValue(part, column, false);
      list.parts.push_back(std::move(part));
    } while (!scan_.problem() && !scan_.AtEnd() && Column() == column && scan_.AtDash());
    TakeDeeper(list.after, column);
  }

  void ReadBlockScalar(Part& part, int parent) {
    part.value.form = Form::kBlockScalar;
    BlockHeader header = scan_.TakeBlockHeader();
    part.trailing = scan_.FinishLine();
    BlockContent content = scan_.TakeBlockContent(std::max(parent, 0), header);
    // The text gets a line end at its end, which must not become part of this scalar.
    if (content.open_ended) header.text = header.text.substr(0, 1) + "-";
    // Content is written two columns right of what it belongs to.
    if (header.indent != 0) header.text += "2";
    part.value.lines = std::move(content.lines);
    part.value.lines.insert(part.value.lines.begin(), std::move(header.text));
    scan_.CollectRemarks(pending_);
  }

  LayoutScan scan_;
  YamlRemarks pending_{};  // Read, but it is not known yet what they belong to.
  int root_column_ = 0;
};

}  // namespace

std::expected<YamlPage, YamlProblem> ReadLayout(std::string_view text) {
  return LayoutReader(text).Read();
}

}  // namespace weir
