#include "server/console.h"

#include <array>

namespace weir {

Result<std::string> ReadAll(std::istream& in, std::size_t cap) {
  std::string text;
  std::array<char, 16'384> piece;
  while (in.good()) {
    in.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > cap) {
      return std::unexpected(
          Error{ErrorCode::kTooLarge, "there is more than " + std::to_string(cap) + " bytes"});
    }
  }
  return text;
}

std::string CountOf(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace weir
