// Which values of something that clients choose, like paths, are asked for most. A rule that counts
// by it must say which values it is for: whoever can make up new ones would be counted anew for
// each.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace weir::lab {

class ChosenValues {
 public:
  static constexpr std::size_t kMostListed = 64;

  void Count(const std::string& value);

  struct Listed {
    std::vector<std::string> values{};  // Those asked for most, in the order of the alphabet.
    std::uint64_t requests = 0;         // For these,
    std::uint64_t left_out = 0;         // and for others.
  };
  Listed List() const;

 private:
  // Of more than that, those that come later are not counted one by one.
  static constexpr std::size_t kMostKnown = 100'000;

  std::unordered_map<std::string, std::uint64_t> counts_;
  std::uint64_t others_ = 0;
};

}  // namespace weir::lab
