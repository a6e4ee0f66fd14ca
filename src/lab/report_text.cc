// A report for a terminal: columns by the width that characters have there, colours only if asked
// for, and nothing in it that a terminal would obey.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/report.h"
#include "lab/shown_text.h"
#include "lab/sparkline.h"

namespace weir::lab {
namespace {

constexpr std::size_t kSparkColumns = 24;  // Of a table.
constexpr std::size_t kLeastColumns = 12;  // What is left of a text, however little room there is.
constexpr std::size_t kNameColumns = 28;   // Of a series beside its bars.
constexpr std::size_t kLeastSpark = 16;    // Of a plot.
constexpr std::string_view kIndent = "  ";
constexpr std::string_view kColumnGap = "  ";

class Terminal {
 public:
  explicit Terminal(const TextOptions& options)
      : width_(static_cast<std::size_t>(std::max(40, options.width))), color_(options.color) {}

  std::string Take() { return std::move(out_); }
  std::size_t width() const { return width_; }

  std::string Painted(std::string_view text, std::string_view codes) const {
    if (!color_ || codes.empty() || text.empty()) return std::string(text);
    return "\x1b[" + std::string(codes) + "m" + std::string(text) + "\x1b[0m";
  }
  std::string Painted(std::string_view text, Tone tone) const {
    switch (tone) {
      case Tone::kPlain:
        return std::string(text);
      case Tone::kQuiet:
        return Painted(text, "2");
      case Tone::kGood:
        return Painted(text, "32");
      case Tone::kWarning:
        return Painted(text, "33");
      case Tone::kBad:
        return Painted(text, "31");
    }
    return std::string(text);
  }

  void Put(std::string_view text) { out_ += text; }
  void Heading(std::string_view title) {
    if (!title.empty()) out_ += Painted(ShownText(title), "1") + "\n";
  }
  void Note(std::string_view note) {
    if (!note.empty()) Painting(Wrapped(ShownText(note, Lines::kMany), width_, kIndent), "2");
  }
  // Colours never reach over the end of a line.
  void Painting(std::string_view lines, std::string_view codes) {
    while (!lines.empty()) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      out_ += Painted(lines.substr(0, end), codes) + "\n";
      lines.remove_prefix(std::min(lines.size(), end + 1));
    }
  }

 private:
  const std::size_t width_;
  const bool color_;
  std::string out_;
};

std::string Padded(const std::string& painted, std::size_t width, std::size_t columns,
                   bool is_text) {
  const std::string space(columns > width ? columns - width : 0, ' ');
  return is_text ? painted + space : space + painted;
}

// --- Tables ---

struct Written {
  std::string text;
  Tone tone;
  bool is_text;
};

Written WriteCell(const Cell& cell, const Table::Column& column) {
  if (!cell.text.empty()) {
    return {.text = ShownText(cell.text), .tone = cell.tone, .is_text = column.is_text};
  }
  if (!cell.spark.empty()) {
    return {.text = Sparkline(cell.spark, kSparkColumns), .tone = cell.tone, .is_text = true};
  }
  if (!cell.value) return {.text = "", .tone = cell.tone, .is_text = column.is_text};
  return {
      .text = WriteValue(*cell.value, column.unit), .tone = cell.tone, .is_text = column.is_text};
}

// Texts give way, the widest first, until the row fits or they are as narrow as they may be.
void FitTo(std::size_t room, const Table& table, std::vector<std::size_t>& widths) {
  const auto used = [&] {
    std::size_t sum = kIndent.size();
    for (const std::size_t width : widths) sum += width + kColumnGap.size();
    return sum - kColumnGap.size();
  };
  while (used() > room) {
    std::size_t widest = table.columns.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!table.columns[i].is_text || widths[i] <= kLeastColumns) continue;
      if (widest == table.columns.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == table.columns.size()) return;
    --widths[widest];
  }
}

void WriteTable(Terminal& out, const Table& table) {
  out.Heading(table.title);
  const std::size_t count = table.columns.size();
  std::vector<std::vector<Written>> rows;
  std::vector<std::size_t> widths(count, 0);
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < count; ++i) {
    labels.push_back(ShownText(table.columns[i].label));
    widths[i] = DisplayWidth(labels[i]);
  }
  for (const auto& cells : table.rows) {
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < std::min(count, cells.size()); ++i) {
      row.push_back(WriteCell(cells[i], table.columns[i]));
      widths[i] = std::max(widths[i], DisplayWidth(row.back().text));
    }
  }
  FitTo(out.width(), table, widths);
  const auto put = [&](std::string line) {
    // Colours stand before the spaces at the end, if there are any.
    line.erase(line.find_last_not_of(' ') + 1);
    out.Put(line + "\n");
  };
  std::string head(kIndent);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string label = CutTo(labels[i], widths[i]);
    const bool left =
        table.columns[i].is_text ||
        (!table.rows.empty() && table.rows[0].size() > i && !table.rows[0][i].spark.empty());
    head += Padded(out.Painted(label, "2"), DisplayWidth(label), widths[i], left);
    head += kColumnGap;
  }
  put(head);
  for (const auto& row : rows) {
    std::string line(kIndent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string text = CutTo(row[i].text, widths[i]);
      line += Padded(out.Painted(text, row[i].tone), DisplayWidth(text), widths[i], row[i].is_text);
      line += kColumnGap;
    }
    put(line);
  }
  out.Note(table.note);
}

// --- Plots ---

SparkScale ScaleOf(const Plot& plot) {
  SparkScale scale{.logarithmic = plot.y_axis.logarithmic};
  for (const Series& series : plot.series) scale.Include(series.values);
  return scale;
}

// Panels that show the same thing are on the same scale.
SparkScale ScaleOf(const Panels& panels, const Plot& plot) {
  SparkScale scale{.logarithmic = plot.y_axis.logarithmic};
  for (const Plot& other : panels.plots) {
    if (other.y_axis.unit != plot.y_axis.unit || other.y_axis.label != plot.y_axis.label) continue;
    for (const Series& series : other.series) scale.Include(series.values);
  }
  return scale;
}

std::string FromTo(const std::vector<double>& values, Unit unit) {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = low;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    if (!(low <= value)) low = value;
    if (!(high >= value)) high = value;
  }
  if (std::isnan(low)) return "nothing";
  const std::string from = WriteValue(low, unit);
  const std::string to = WriteValue(high, unit);
  return from == to ? to : from + " to " + to;
}

// What is plotted, and what is marked in it. The bars of all series are on the same scale.
void WriteSeries(Terminal& out, const Plot& plot, const SparkScale& scale) {
  std::vector<std::string> names;
  std::vector<std::string> ranges;
  std::size_t name_columns = 0;
  std::size_t range_columns = 0;
  for (const Series& series : plot.series) {
    names.push_back(CutTo(ShownText(series.name), kNameColumns));
    ranges.push_back(FromTo(series.values, plot.y_axis.unit));
    name_columns = std::max(name_columns, DisplayWidth(names.back()));
    range_columns = std::max(range_columns, DisplayWidth(ranges.back()));
  }
  const std::size_t others = kIndent.size() + name_columns + range_columns + 2 * kColumnGap.size();
  const std::size_t room = std::max(kLeastSpark, out.width() - std::min(out.width(), others));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Series& series = plot.series[i];
    const std::string bars = SparklineOn(scale, series.values, room);
    out.Put(std::string(kIndent) + Padded(names[i], DisplayWidth(names[i]), name_columns, true));
    out.Put(std::string(kColumnGap) + out.Painted(bars, series.tone));
    out.Put(std::string(kColumnGap) + ranges[i] + "\n");
  }
  for (const Plot::Line& line : plot.lines) {
    out.Put(std::string(kIndent) + "─ " + out.Painted(ShownText(line.label), line.tone) + ": " +
            WriteValue(line.y, plot.y_axis.unit) + "\n");
  }
  for (const Plot::Mark& mark : plot.marks) {
    out.Put(std::string(kIndent) + "● " + out.Painted(ShownText(mark.label), mark.tone) + ": " +
            WriteValue(mark.y, plot.y_axis.unit) + " at " + WriteValue(mark.x, plot.x_axis.unit) +
            "\n");
  }
  for (const Plot::Band& band : plot.bands) {
    out.Put(std::string(kIndent) + "▒ " + out.Painted(ShownText(band.label), band.tone) + ": " +
            WriteValue(band.from, plot.x_axis.unit) + " to " +
            WriteValue(band.to, plot.x_axis.unit) + "\n");
  }
}

// "Admitted (per second, from 0 s to 10 s)"
void PlotHeading(Terminal& out, const Plot& plot) {
  std::string title = plot.title;
  std::string axes = plot.y_axis.label;
  if (!plot.x.empty()) {
    if (!axes.empty()) axes += ", ";
    axes += FromTo(plot.x, plot.x_axis.unit);
  }
  if (!axes.empty()) title += title.empty() ? axes : " (" + axes + ")";
  out.Heading(title);
}

struct SectionWriter {
  Terminal& out;

  void operator()(const Paragraph& paragraph) const {
    out.Heading(paragraph.title);
    out.Put(Wrapped(ShownText(paragraph.text, Lines::kMany), out.width(), kIndent));
  }
  void operator()(const Table& table) const { WriteTable(out, table); }
  void operator()(const Plot& plot) const {
    PlotHeading(out, plot);
    WriteSeries(out, plot, ScaleOf(plot));
    out.Note(plot.note);
  }
  void operator()(const Panels& panels) const {
    out.Heading(panels.title);
    for (const Plot& plot : panels.plots) {
      PlotHeading(out, plot);
      WriteSeries(out, plot, ScaleOf(panels, plot));
      out.Note(plot.note);
    }
    out.Note(panels.note);
  }
  void operator()(const Listing& listing) const {
    out.Heading(listing.title);
    std::string text = ShownText(listing.text, Lines::kMany);
    if (!text.empty() && text.back() != '\n') text += '\n';
    out.Put(text);
  }
};

void WriteFacts(Terminal& out, const std::vector<Fact>& facts) {
  std::size_t columns = 0;
  for (const Fact& fact : facts) columns = std::max(columns, DisplayWidth(ShownText(fact.label)));
  for (const Fact& fact : facts) {
    const std::string label = ShownText(fact.label);
    out.Put(std::string(kIndent) +
            Padded(out.Painted(label, "2"), DisplayWidth(label), columns, true) +
            std::string(kColumnGap) + out.Painted(ShownText(fact.value), fact.tone) + "\n");
  }
}

}  // namespace

std::string ReportText(const Report& report, const TextOptions& options) {
  Terminal out(options);
  out.Heading(report.title);
  if (!report.subtitle.empty()) {
    out.Painting(Wrapped(ShownText(report.subtitle, Lines::kMany), out.width(), ""), "2");
  }
  for (const std::string& warning : report.warnings) {
    out.Put("\n");
    out.Painting(Wrapped("WARNING: " + ShownText(warning, Lines::kMany), out.width(), ""), "1;33");
  }
  if (!report.facts.empty()) {
    out.Put("\n");
    WriteFacts(out, report.facts);
  }
  for (const Section& section : report.sections) {
    out.Put("\n");
    std::visit(SectionWriter{out}, section);
  }
  return out.Take();
}

}  // namespace weir::lab
