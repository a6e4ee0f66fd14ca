#include "lab/label_places.h"

#include <algorithm>

namespace weir::lab {

Box LabelPlaces::BoxOf(const LabelPlace& place, double width) const {
  const double left = place.anchor == "start" ? place.x
                      : place.anchor == "end" ? place.x - width
                                              : place.x - width / 2;
  return {.left = left, .top = place.y - size_, .right = left + width, .bottom = place.y + 3};
}

void LabelPlaces::Place(SvgDrawing& out, std::string_view label, Tone tone,
                        std::span<const LabelPlace> places) {
  if (label.empty() || places.empty()) return;
  const std::string text = FittingText(label, inside_.right - inside_.left, size_);
  const double width = TextWidth(text, size_);
  const LabelPlace* within = nullptr;
  const LabelPlace* free = nullptr;
  std::ptrdiff_t least = 0;
  for (const LabelPlace& place : places) {
    const Box box = BoxOf(place, width);
    if (!inside_.Holds(box)) continue;
    if (within == nullptr) within = &place;
    if (std::ranges::any_of(taken_, [&](const Box& other) { return box.Meets(other); })) continue;
    const auto behind = std::ranges::count_if(curves_, [&](const Point& point) {
      return point.x > box.left && point.x < box.right && point.y > box.top && point.y < box.bottom;
    });
    if (free == nullptr || behind < least) {
      free = &place;
      least = behind;
    }
  }
  LabelPlace at = free != nullptr ? *free : within != nullptr ? *within : places.front();
  const Box box = BoxOf(at, width);
  at.x += std::max(0.0, inside_.left - box.left) - std::max(0.0, box.right - inside_.right);
  at.y = std::clamp(at.y, inside_.top + size_, std::max(inside_.top + size_, inside_.bottom - 3));
  taken_.push_back(BoxOf(at, width));
  out.Text(at.x, at.y, text,
           {.size = size_, .color = TextColorOf(tone), .anchor = at.anchor, .halo = true});
}

}  // namespace weir::lab
