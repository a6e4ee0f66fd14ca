// The strokes that pictures are made of, as SVG with numbers that are the same everywhere.
#pragma once

#include <string>
#include <string_view>

#include "lab/report.h"

namespace weir::lab {

inline constexpr std::string_view kInk = "#1f2430";
inline constexpr std::string_view kFaint = "#5b6472";
inline constexpr std::string_view kGrid = "#e4e8ed";
inline constexpr std::string_view kFrame = "#d5dae1";
inline constexpr std::string_view kGround = "#ffffff";

// Of a series that is plain, by its place among those.
std::string_view ColorOf(Tone tone, std::size_t place = 0);
// Text is darker than what is drawn, so that it can be read.
std::string_view TextColorOf(Tone tone);

// About as wide as common fonts make it.
double TextWidth(std::string_view text, double size);
// Shown text, cut off where the room ends.
std::string FittingText(std::string_view text, double room, double size);

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  bool Meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool Holds(const Box& other) const {
    return left <= other.left && other.right <= right && top <= other.top && other.bottom <= bottom;
  }
};

struct TextStyle {
  double size = 12;
  std::string_view color = kInk;
  std::string_view anchor = "start";
  bool bold = false;
  bool halo = false;  // Readable in front of lines.
};

// A path, point by point.
class PathData {
 public:
  void MoveTo(double x, double y) { Add('M', x, y); }
  void LineTo(double x, double y) { Add('L', x, y); }
  void Close() { data_ += 'Z'; }
  const std::string& data() const { return data_; }

 private:
  void Add(char command, double x, double y);
  std::string data_{};
};

class SvgDrawing {
 public:
  struct Stroke {
    std::string_view color = kInk;
    double width = 1;
    std::string_view dashes{};
  };

  void Text(double x, double y, std::string_view text, const TextStyle& style);
  void Line(const Box& from_to, const Stroke& stroke);
  void Rectangle(const Box& box, std::string_view color, std::string_view opacity = {});
  void Outline(const PathData& path, const Stroke& stroke);
  void Filled(const PathData& path, std::string_view color, std::string_view opacity);
  void Dot(double x, double y, double radius, std::string_view color);
  // The whole picture, on a ground of its own.
  std::string Picture(int width, int height, std::string_view title) const;

 private:
  std::string out_{};
};

}  // namespace weir::lab
