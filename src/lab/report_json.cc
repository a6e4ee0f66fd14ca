#include "lab/report_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "lab/shown_text.h"

namespace weir::lab {
namespace {

using Json = nlohmann::ordered_json;

const char* NameOf(Tone tone) {
  constexpr std::array<const char*, 5> kNames = {"plain", "quiet", "good", "warning", "bad"};
  return kNames[static_cast<std::size_t>(tone)];
}

const char* NameOf(Unit unit) {
  constexpr std::array<const char*, 7> kNames = {"count", "rate",    "seconds", "time",
                                                 "bytes", "percent", "factor"};
  return kNames[static_cast<std::size_t>(unit)];
}

const char* NameOf(Series::Style style) {
  constexpr std::array<const char*, 4> kNames = {"line", "steps", "area", "bars"};
  return kNames[static_cast<std::size_t>(style)];
}

// Whole numbers are exact; of others no one sees more than six digits, but of a time to the
// millisecond.
Json Number(double value, Unit unit) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<std::int64_t>(value);
  if (unit == Unit::kTime) return std::round(value * 1000) / 1000;
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::scientific, 5);
  double rounded = value;
  std::from_chars(digits.data(), end.ptr, rounded);
  return rounded;
}

Json Numbers(const std::vector<double>& values, Unit unit) {
  Json array = Json::array();
  for (const double value : values) array.push_back(Number(value, unit));
  return array;
}

// What is not said is left out.
void Put(Json& into, const char* name, const std::string& text, Lines lines = Lines::kOne) {
  if (!text.empty()) into[name] = ShownText(text, lines);
}
void Put(Json& into, Tone tone) {
  if (tone != Tone::kPlain) into["tone"] = NameOf(tone);
}

Json AxisJson(const Axis& axis) {
  Json json = {{"unit", NameOf(axis.unit)}};
  Put(json, "label", axis.label);
  if (axis.logarithmic) json["log"] = true;
  return json;
}

Json SeriesJson(const Series& series, const Plot& plot) {
  Json json = {{"name", ShownText(series.name)}, {"style", NameOf(series.style)}};
  Put(json, series.tone);
  json["values"] = Numbers(series.values, plot.y_axis.unit);
  // One for each x, whatever was given.
  while (json["values"].size() < plot.x.size()) json["values"].push_back(nullptr);
  while (json["values"].size() > plot.x.size()) json["values"].erase(plot.x.size());
  return json;
}

struct SectionJson {
  Json operator()(const Paragraph& paragraph) const {
    return {{"kind", "paragraph"},
            {"title", ShownText(paragraph.title)},
            {"text", ShownText(paragraph.text, Lines::kMany)}};
  }

  Json operator()(const Listing& listing) const {
    return {{"kind", "listing"},
            {"title", ShownText(listing.title)},
            {"language", ShownText(listing.language)},
            {"text", ShownText(listing.text, Lines::kMany)}};
  }

  Json operator()(const Table& table) const {
    Json json = {{"kind", "table"}, {"title", ShownText(table.title)}};
    Put(json, "note", table.note, Lines::kMany);
    Json columns = Json::array();
    for (const Table::Column& column : table.columns) {
      Json each = {{"label", ShownText(column.label)}, {"unit", NameOf(column.unit)}};
      if (column.is_text) each["text"] = true;
      Put(each, "help", column.help);
      columns.push_back(std::move(each));
    }
    json["columns"] = std::move(columns);
    Json rows = Json::array();
    for (const auto& cells : table.rows) {
      Json row = Json::array();
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const Unit unit = i < table.columns.size() ? table.columns[i].unit : Unit::kCount;
        row.push_back(CellJson(cells[i], unit));
      }
      rows.push_back(std::move(row));
    }
    json["rows"] = std::move(rows);
    return json;
  }

  static Json CellJson(const Cell& cell, Unit unit) {
    Json json = Json::object();
    Put(json, "text", cell.text);
    if (cell.value) json["value"] = Number(*cell.value, unit);
    if (!cell.spark.empty()) json["spark"] = Numbers(cell.spark, unit);
    Put(json, cell.tone);
    return json;
  }

  Json operator()(const Plot& plot) const {
    Json json = {{"kind", "plot"}, {"title", ShownText(plot.title)}};
    Put(json, "note", plot.note, Lines::kMany);
    json["x_axis"] = AxisJson(plot.x_axis);
    json["y_axis"] = AxisJson(plot.y_axis);
    json["x"] = Numbers(plot.x, plot.x_axis.unit);
    json["series"] = Json::array();
    for (const Series& series : plot.series) json["series"].push_back(SeriesJson(series, plot));
    json["lines"] = Json::array();
    for (const Plot::Line& line : plot.lines) {
      Json each = {{"y", Number(line.y, plot.y_axis.unit)}, {"label", ShownText(line.label)}};
      Put(each, line.tone);
      json["lines"].push_back(std::move(each));
    }
    json["bands"] = Json::array();
    for (const Plot::Band& band : plot.bands) {
      json["bands"].push_back({{"from", Number(band.from, plot.x_axis.unit)},
                               {"to", Number(band.to, plot.x_axis.unit)},
                               {"label", ShownText(band.label)},
                               {"tone", NameOf(band.tone)}});
    }
    json["marks"] = Json::array();
    for (const Plot::Mark& mark : plot.marks) {
      json["marks"].push_back({{"x", Number(mark.x, plot.x_axis.unit)},
                               {"y", Number(mark.y, plot.y_axis.unit)},
                               {"label", ShownText(mark.label)},
                               {"tone", NameOf(mark.tone)}});
    }
    return json;
  }

  Json operator()(const Panels& panels) const {
    Json json = {{"kind", "panels"}, {"title", ShownText(panels.title)}};
    Put(json, "note", panels.note, Lines::kMany);
    json["plots"] = Json::array();
    for (const Plot& plot : panels.plots) json["plots"].push_back((*this)(plot));
    return json;
  }
};

// Outside of its strings JSON has none of these, and inside they may be written like this.
std::string Harmless(const std::string& json) {
  std::string harmless;
  harmless.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<':
        harmless += "\\u003c";
        break;
      case '>':
        harmless += "\\u003e";
        break;
      case '&':
        harmless += "\\u0026";
        break;
      default:
        harmless += c;
    }
  }
  return harmless;
}

}  // namespace

std::string ReportJson(const Report& report) {
  Json json = {{"title", ShownText(report.title)}};
  Put(json, "subtitle", report.subtitle, Lines::kMany);
  json["warnings"] = Json::array();
  for (const std::string& warning : report.warnings) {
    json["warnings"].push_back(ShownText(warning, Lines::kMany));
  }
  json["facts"] = Json::array();
  for (const Fact& fact : report.facts) {
    Json each = {{"label", ShownText(fact.label)}, {"value", ShownText(fact.value)}};
    Put(each, fact.tone);
    json["facts"].push_back(std::move(each));
  }
  json["sections"] = Json::array();
  for (const Section& section : report.sections) {
    json["sections"].push_back(std::visit(SectionJson{}, section));
  }
  return Harmless(json.dump());
}

}  // namespace weir::lab
