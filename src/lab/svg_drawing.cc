#include "lab/svg_drawing.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lab/shown_text.h"

namespace weir::lab {
namespace {

// Told apart also by those who do not see all colours, in this order.
constexpr std::array<std::string_view, 8> kSeriesColors = {
    "#2a6fb5", "#d9730d", "#0f8a6d", "#8e4ec6", "#b0368a", "#4b5563", "#a67c00", "#1b9bc2"};
constexpr double kColumn = 0.56;  // Of a size of text.

// At most one decimal: a tenth of a pixel.
std::string N(double value) {
  std::array<char, 400> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, 1);
  std::string text(buffer.data(), end.ptr);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : ShownText(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}

std::string StrokeOf(const SvgDrawing::Stroke& stroke) {
  std::string text = Attribute("stroke", stroke.color) + Attribute("stroke-width", N(stroke.width));
  if (!stroke.dashes.empty()) text += Attribute("stroke-dasharray", stroke.dashes);
  return text;
}

}  // namespace

std::string_view ColorOf(Tone tone, std::size_t place) {
  switch (tone) {
    case Tone::kPlain:
      return kSeriesColors[place % kSeriesColors.size()];
    case Tone::kQuiet:
      return "#aab2bd";
    case Tone::kGood:
      return "#1a8a5a";
    case Tone::kWarning:
      return "#c77d00";
    case Tone::kBad:
      return "#c0392b";
  }
  return kInk;
}

std::string_view TextColorOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return kInk;
    case Tone::kQuiet:
      return kFaint;
    case Tone::kGood:
      return "#14704a";
    case Tone::kWarning:
      return "#8f5a00";
    case Tone::kBad:
      return "#b03024";
  }
  return kInk;
}

double TextWidth(std::string_view text, double size) {
  return kColumn * size * static_cast<double>(DisplayWidth(text));
}

std::string FittingText(std::string_view text, double room, double size) {
  return CutTo(ShownText(text), static_cast<std::size_t>(std::max(1.0, room / (kColumn * size))));
}

void PathData::Add(char command, double x, double y) {
  data_ += command;
  data_ += N(x) + " " + N(y);
}

void SvgDrawing::Text(double x, double y, std::string_view text, const TextStyle& style) {
  out_ += "<text" + Attribute("x", N(x)) + Attribute("y", N(y)) + Attribute("fill", style.color) +
          Attribute("font-size", N(style.size));
  if (style.anchor != "start") out_ += Attribute("text-anchor", style.anchor);
  if (style.bold) out_ += Attribute("font-weight", "bold");
  if (style.halo) {
    out_ += Attribute("stroke", kGround) + Attribute("stroke-width", "3.5") +
            Attribute("stroke-linejoin", "round") + Attribute("paint-order", "stroke");
  }
  out_ += ">" + Escaped(text) + "</text>\n";
}

void SvgDrawing::Line(const Box& from_to, const Stroke& stroke) {
  out_ += "<line" + Attribute("x1", N(from_to.left)) + Attribute("y1", N(from_to.top)) +
          Attribute("x2", N(from_to.right)) + Attribute("y2", N(from_to.bottom)) +
          StrokeOf(stroke) + "/>\n";
}

void SvgDrawing::Rectangle(const Box& box, std::string_view color, std::string_view opacity) {
  out_ += "<rect" + Attribute("x", N(box.left)) + Attribute("y", N(box.top)) +
          Attribute("width", N(box.right - box.left)) +
          Attribute("height", N(box.bottom - box.top)) + Attribute("fill", color);
  if (!opacity.empty()) out_ += Attribute("fill-opacity", opacity);
  out_ += "/>\n";
}

void SvgDrawing::Outline(const PathData& path, const Stroke& stroke) {
  if (path.data().empty()) return;
  out_ += "<path" + Attribute("d", path.data()) + Attribute("fill", "none") + StrokeOf(stroke) +
          Attribute("stroke-linejoin", "round") + "/>\n";
}

void SvgDrawing::Filled(const PathData& path, std::string_view color, std::string_view opacity) {
  if (path.data().empty()) return;
  out_ += "<path" + Attribute("d", path.data()) + Attribute("fill", color) +
          Attribute("fill-opacity", opacity) + "/>\n";
}

void SvgDrawing::Dot(double x, double y, double radius, std::string_view color) {
  out_ += "<circle" + Attribute("cx", N(x)) + Attribute("cy", N(y)) + Attribute("r", N(radius)) +
          Attribute("fill", color) + StrokeOf({.color = kGround, .width = 1.5}) + "/>\n";
}

std::string SvgDrawing::Picture(int width, int height, std::string_view title) const {
  const std::string size = std::to_string(width);
  const std::string tall = std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + Attribute("width", size) +
         Attribute("height", tall) + Attribute("viewBox", "0 0 " + size + " " + tall) +
         Attribute("role", "img") + Attribute("font-family", "Helvetica, Arial, sans-serif") +
         ">\n<title>" + Escaped(title) + "</title>\n<rect x=\"0.5\" y=\"0.5\"" +
         Attribute("width", std::to_string(width - 1)) +
         Attribute("height", std::to_string(height - 1)) + Attribute("rx", "8") +
         Attribute("fill", kGround) + Attribute("stroke", kFrame) + "/>\n" + out_ + "</svg>\n";
}

}  // namespace weir::lab
