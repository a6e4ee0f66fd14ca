// Lets yaml-cpp read a text, and turns what it says into a tree or into problems. The only file
// that sees yaml-cpp and its exceptions.
#include "policy/yaml_tree.h"

#include <algorithm>
#include <array>
#include <istream>
#include <stdexcept>
#include <streambuf>
#include <utility>

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "policy/yaml_builder.h"
#include "policy/yaml_source.h"

namespace weir {
namespace {

using YamlProblemKind = YamlProblem::Kind;

// Gives the parser the text bit by bit, and the end of it when nothing more is wanted: an event
// handler that does not throw has no other way to stop it. Also when the parser reads far ahead of
// what it tells, because it keeps every token until then, at a hundred times the memory.
class FedText : public std::streambuf {
 public:
  explicit FedText(std::string_view text) : text_(text) {}

  void Stop() {
    stopped_ = true;
    setg(nullptr, nullptr, nullptr);
  }
  void ToldOf(std::size_t offset) { told_ = std::max(told_, offset); }
  bool went_too_far() const { return went_too_far_; }

 protected:
  int_type underflow() override {
    if (stopped_ || fed_ >= text_.size()) return traits_type::eof();
    if (fed_ > told_ + kMaxYamlPieceBytes) {
      went_too_far_ = true;
      Stop();
      return traits_type::eof();
    }
    const std::string_view next = text_.substr(fed_, kBytesAtOnce);
    fed_ += next.size();
    char* begin = const_cast<char*>(next.data());  // Never written to.
    setg(begin, begin, begin + next.size());
    return traits_type::to_int_type(*begin);
  }

 private:
  static constexpr std::size_t kBytesAtOnce = 4096;

  std::string_view text_;
  std::size_t fed_ = 0;
  std::size_t told_ = 0;
  bool stopped_ = false;
  bool went_too_far_ = false;
};

// What the parser says, put in the builder's words.
class Events : public YAML::EventHandler {
 public:
  Events(YamlSource& source, FedText& fed) : source_(source), fed_(fed), builder_(source) {}

  YamlBuilder& builder() { return builder_; }
  std::size_t last_offset() const { return last_offset_; }
  // Where the last text began, if it has quotes or is a block.
  std::optional<std::size_t> last_not_plain() const { return last_not_plain_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) ReportSecondDocument(OffsetOf(mark));
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!Begin(mark)) return;
    builder_.AddNull({.offset = last_offset_, .anchor = anchor});
    End();
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!Begin(mark)) return;
    builder_.AddAlias(last_offset_, anchor);
    End();
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!Begin(mark)) return;
    last_not_plain_.reset();
    if (tag == kNotPlain) last_not_plain_ = SkipAnchor(last_offset_);
    builder_.AddScalar({.offset = last_offset_, .anchor = anchor, .tagged = IsTagged(tag)}, value,
                       tag == kNotPlain);
    End();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Open(mark, tag, anchor, style, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Open(mark, tag, anchor, style, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  // The parser's tag of a scalar with quotes or in a block, if there is none in the text.
  static constexpr std::string_view kNotPlain = "!";
  static constexpr std::string_view kPlain = "?";

  static std::size_t OffsetOf(const YAML::Mark& mark) {
    return static_cast<std::size_t>(std::max(mark.pos, 0));
  }

  bool Begin(const YAML::Mark& mark) {
    if (fed_.went_too_far()) return false;
    last_offset_ = OffsetOf(mark);
    fed_.ToldOf(last_offset_);
    return !builder_.stopped();
  }

  void End() {
    if (builder_.stopped()) fed_.Stop();
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style, YamlNode::Kind kind) {
    if (!Begin(mark)) return;
    builder_.Open({.offset = last_offset_,
                   .anchor = anchor,
                   .tagged = IsTagged(tag),
                   .flow = style == YAML::EmitterStyle::Flow},
                  kind);
    End();
  }

  void Close() {
    builder_.Close();
    End();
  }

  // The tag "!" may be the parser's own; then the text does not have it.
  bool IsTagged(const std::string& tag) const {
    if (tag == kPlain) return false;
    if (tag != kNotPlain) return true;
    return source_.At(SkipAnchor(last_offset_)) == '!';
  }

  std::size_t SkipAnchor(std::size_t offset) const {
    if (source_.At(offset) != '&') return offset;
    offset = source_.text().find_first_of(" \t\r\n", offset);
    return source_.text().find_first_not_of(" \t\r\n", offset);
  }

  // Text after the end of a document counts as another one for the parser.
  void ReportSecondDocument(std::size_t offset) {
    const std::string_view before = source_.text().substr(0, offset);
    const std::size_t end = before.find_last_not_of(" \t\r\n");
    const bool ended = end != std::string_view::npos && before.substr(0, end + 1).ends_with("...");
    if (ended || source_.text().substr(offset).starts_with("---")) {
      builder_.Report(YamlProblemKind::kSeveral, source_.PlaceOf(offset),
                      "a second document begins here; keep one document per file");
    } else {
      builder_.Report(YamlProblemKind::kSyntax, source_.PlaceOf(offset),
                      "this does not belong to anything before it; check the indentation, and that "
                      "keys end with a colon and a blank");
    }
    fed_.Stop();
  }

  YamlSource& source_;
  FedText& fed_;
  YamlBuilder builder_;
  std::size_t last_offset_ = 0;
  std::optional<std::size_t> last_not_plain_{};
  int documents_ = 0;
};

struct Meaning {
  const char* said;
  std::string_view meant;
};
const std::array kMeanings = std::to_array<Meaning>({
    {YAML::ErrorMsg::END_OF_MAP,
     "this is no \"key: value\" of the map it stands in; check the indentation, and the colon and "
     "blank behind the key"},
    {YAML::ErrorMsg::END_OF_SEQ,
     "this is no \"- item\" of the list it stands in; check the indentation"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW,
     "a \"}\" or a comma is missing here or before it; within brackets a text with any of , ? [ ] "
     "{ } "
     "needs quotes"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW,
     "a \"]\" or a comma is missing here or before it; within brackets a text with any of , ? [ ] "
     "{ } "
     "needs quotes"},
    {YAML::ErrorMsg::DOC_IN_SCALAR, "a quote before this line is not closed; add the closing one"},
    {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab cannot indent in YAML; use spaces"},
    {YAML::ErrorMsg::FLOW_END, "this bracket closes nothing; remove it or add the opening one"},
    {YAML::ErrorMsg::BLOCK_ENTRY,
     "a list item cannot begin here; begin it on a line of its own, or put the text into quotes"},
    {YAML::ErrorMsg::MAP_KEY, "a key cannot stand here; put it on a line of its own"},
    {YAML::ErrorMsg::MAP_VALUE,
     "a colon is not expected here; put the text into quotes if the colon belongs to it, else "
     "check "
     "the indentation"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN,
     "a text cannot begin with this character; put the text into quotes"},
    {YAML::ErrorMsg::CHAR_IN_BLOCK,
     "nothing but + - or a digit may follow \"|\" or \">\" on the line; begin the text on the "
     "next"},
});

class Reader {
 public:
  explicit Reader(std::string_view text)
      : source_(WithoutByteOrderMark(text)), fed_(source_.text()), events_(source_, fed_) {}

  YamlReport Read() {
    if (std::optional<YamlProblem> problem = source_.FirstProblem()) {
      return {.root = std::nullopt, .problems = {*std::move(problem)}};
    }
    try {
      std::istream stream(&fed_);
      YAML::Parser parser(stream);
      while (!events_.builder().stopped() && parser.HandleNextDocument(events_)) {
      }
      CheckLastQuote();
    } catch (const YAML::DeepRecursion& failure) {
      Fail(YamlProblemKind::kTooLarge, failure, "too many levels; write the document flatter");
    } catch (const YAML::Exception& failure) {
      Explain(failure);
    } catch (const std::runtime_error& failure) {
      events_.builder().Report(YamlProblemKind::kSyntax, source_.PlaceOf(events_.last_offset()),
                               "cannot be read after this: " + std::string(failure.what()));
    }
    if (fed_.went_too_far()) return TooFar();
    return events_.builder().Finish();
  }

 private:
  // The parser saw the end of the text too early, so nothing that it says about the rest counts.
  YamlReport TooFar() {
    return {.root = std::nullopt,
            .problems = {{.kind = YamlProblemKind::kTooLarge,
                          .place = source_.PlaceOf(events_.last_offset()),
                          .message = "behind this a single text, a collection in brackets or a "
                                     "comment is longer than " +
                                     std::to_string(kMaxYamlPieceBytes >> 20) +
                                     " MiB; write large collections as one line per entry, with "
                                     "\"- \" and \"key: \""}}};
  }

  void Fail(YamlProblemKind kind, const YAML::Exception& failure, std::string_view message) {
    const std::size_t offset =
        failure.mark.pos >= 0 ? static_cast<std::size_t>(failure.mark.pos) : events_.last_offset();
    events_.builder().Report(kind, source_.PlaceOf(offset), std::string(message));
  }

  void Explain(const YAML::Exception& failure) {
    const std::size_t offset = static_cast<std::size_t>(std::max(failure.mark.pos, 0));
    CheckLastQuote();
    if (failure.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR)) {
      return Fail(YamlProblemKind::kAlias, failure,
                  "there is no anchor of this name before here; anchors are written &name");
    }
    if (failure.msg == YAML::ErrorMsg::EOF_IN_SCALAR) {
      return ReportQuote(OpenQuote());
    }
    if (LineHasTabIndent(offset)) {
      return Fail(YamlProblemKind::kSyntax, failure, "a tab cannot indent in YAML; use spaces");
    }
    for (const Meaning& meaning : kMeanings) {
      if (meaning.said == failure.msg)
        return Fail(YamlProblemKind::kSyntax, failure, meaning.meant);
    }
    Fail(YamlProblemKind::kSyntax, failure, "this is not YAML: " + failure.msg);
  }

  // The parser takes the end of the text for a closing quote if a line ends there.
  void CheckLastQuote() {
    if (!events_.last_not_plain()) return;
    const std::size_t start = *events_.last_not_plain();
    const char c = source_.At(start);
    if ((c == '"' || c == '\'') && EndOfQuoted(start) == std::string_view::npos) ReportQuote(start);
  }

  void ReportQuote(std::size_t start) {
    events_.builder().Report(YamlProblemKind::kSyntax, source_.PlaceOf(start),
                             "this quote is not closed; add the closing one");
  }

  bool LineHasTabIndent(std::size_t offset) const {
    const std::size_t start = source_.StartOfLine(source_.LineOf(offset));
    return source_.IsIndentedByTab(source_.text().find_first_not_of(" \t", start));
  }

  // The quote that swallowed the rest of the text: looked for after the last thing that was told.
  std::size_t OpenQuote() const {
    const std::string_view text = source_.text();
    bool begins = true;
    for (std::size_t i = events_.last_offset(); i < text.size(); ++i) {
      const char c = text[i];
      if (begins && (c == '"' || c == '\'')) {
        const std::size_t end = EndOfQuoted(i);
        if (end == std::string_view::npos) return i;
        i = end;
      } else if (begins && c == '#') {
        i = std::min(text.find('\n', i), text.size());
      }
      begins = std::string_view(" \t\r\n[{,").contains(source_.At(i));
    }
    return text.size();
  }

  std::size_t EndOfQuoted(std::size_t start) const {
    const std::string_view text = source_.text();
    const char quote = text[start];
    for (std::size_t i = start + 1; i < text.size(); ++i) {
      if (quote == '"' && text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        if (quote == '"' || source_.At(i + 1) != quote) return i;
        ++i;
      }
    }
    return std::string_view::npos;
  }

  YamlSource source_;
  FedText fed_;
  Events events_;
};

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const noexcept {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

YamlReport ReadYaml(std::string_view text) { return Reader(text).Read(); }

}  // namespace weir
