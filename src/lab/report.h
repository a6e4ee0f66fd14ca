// What the lab has found out, ready to be shown. The same report becomes text in a terminal, a page
// with plots that can be explored, and pictures for documents, so that all of them say the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace weir::lab {

// What something means to whoever looks at it; how it is shown is up to the page.
enum class Tone : std::uint8_t {
  kPlain,
  kQuiet,  // Context: what was offered, what is normal.
  kGood,
  kWarning,
  kBad,
};

// How numbers are written, in tables, on axes and where somebody points at them.
enum class Unit : std::uint8_t {
  kCount,    // 12,345
  kRate,     // 12.3/s
  kSeconds,  // 1.5 s, 20 ms, 3 min
  kTime,     // Seconds since 1970, written as a date and time in UTC.
  kBytes,    // 1.2 KiB
  kPercent,  // A fraction: 0.0012 is 0.12 %.
  kFactor,   // 1.98×
};

struct Axis {
  std::string label{};
  Unit unit = Unit::kCount;
  bool logarithmic = false;
};

struct Series {
  // Steps and bars begin at their x and end at the next one, so that an x is where a bucket begins.
  // Bars of several series stand in front of one another, the first at the back.
  enum class Style : std::uint8_t { kLine, kSteps, kArea, kBars };
  std::string name{};
  std::vector<double> values{};  // One for each x of the plot; not a number: nothing there.
  Style style = Style::kLine;
  Tone tone = Tone::kPlain;
};

// Something to look at along one axis that grows to the right. `x` grows from value to value.
struct Plot {
  struct Line {  // Across the whole plot: a limit.
    double y = 0;
    std::string label{};
    Tone tone = Tone::kPlain;
  };
  struct Band {  // From top to bottom: a fault, the worst window.
    double from = 0;
    double to = 0;
    std::string label{};
    Tone tone = Tone::kQuiet;
  };
  struct Mark {
    double x = 0;
    double y = 0;
    std::string label{};
    Tone tone = Tone::kBad;
  };

  std::string title{};
  std::string note{};
  Axis x_axis{};
  Axis y_axis{};
  std::vector<double> x{};
  std::vector<Series> series{};
  std::vector<Line> lines{};
  std::vector<Band> bands{};
  std::vector<Mark> marks{};
};

// Several plots side by side, as many in a row as there is room for. All have the same x, so
// whoever points at one points at all.
struct Panels {
  std::string title{};
  std::string note{};
  std::vector<Plot> plots{};
};

struct Cell {
  Cell(std::string its_text, Tone its_tone = Tone::kPlain)  // NOLINT: meant to convert
      : text(std::move(its_text)), tone(its_tone) {}
  Cell(const char* its_text) : text(its_text) {}        // NOLINT
  Cell(double its_value, Tone its_tone = Tone::kPlain)  // NOLINT
      : value(its_value), tone(its_tone) {}
  // A row of small bars.
  explicit Cell(std::vector<double> its_spark) : spark(std::move(its_spark)) {}

  std::string text{};             // Written as it is; if empty,
  std::optional<double> value{};  // this, in the unit of its column. Rows are sorted by it, too.
  std::vector<double> spark{};
  Tone tone = Tone::kPlain;
};

struct Table {
  struct Column {
    std::string label{};
    Unit unit = Unit::kCount;
    bool is_text = false;  // Begins at the left.
    std::string help{};    // What it means, in a sentence.
  };
  std::string title{};
  std::string note{};
  std::vector<Column> columns{};
  std::vector<std::vector<Cell>> rows{};
};

struct Paragraph {
  std::string title{};
  std::string text{};
};

// To be copied: a policy, a command.
struct Listing {
  std::string title{};
  std::string text{};
  std::string language = "yaml";
};

using Section = std::variant<Paragraph, Table, Plot, Panels, Listing>;

// One thing in a few words, at the head of a report: "denied", "1.2 %".
struct Fact {
  std::string label{};
  std::string value{};
  Tone tone = Tone::kPlain;
};

struct Report {
  std::string title{};
  std::string subtitle{};
  // What whoever reads on must know first: that something is missing.
  std::vector<std::string> warnings{};
  std::vector<Fact> facts{};
  std::vector<Section> sections{};
};

// "12,345", "1.5 s": as all of them write numbers.
std::string WriteValue(double value, Unit unit);

struct TextOptions {
  int width = 100;
  bool color = false;
};
// For a terminal. A plot is a sparkline for each of its series.
std::string ReportText(const Report& report, const TextOptions& options = {});
// Eight heights of bars; values that are not numbers are blanks.
std::string Sparkline(const std::vector<double>& values, std::size_t width);

// One file that needs no other: opened in any browser, also without a network.
std::string ReportPage(const Report& report);

struct PictureOptions {
  int width = 860;
  int height = 300;
};
// The same bytes for the same plot, everywhere.
std::string PlotSvg(const Plot& plot, const PictureOptions& options = {});
// One below the other, each about as high as it says there.
std::string PanelsSvg(const Panels& panels, const PictureOptions& options = {});

}  // namespace weir::lab
