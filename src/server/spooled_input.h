// Standard input that has to be read more than once: kept in a file that has no name and is gone
// with the process.
#pragma once

#include <fstream>
#include <istream>
#include <string>

#include <weir/result.h>

namespace weir {

class SpooledInput {
 public:
  // Reads `in` to its end. The error says that there is no room for it.
  static Result<SpooledInput> Take(std::istream& in);

  SpooledInput(SpooledInput&& other) noexcept;
  SpooledInput& operator=(SpooledInput&&) = delete;
  ~SpooledInput();

  // From its beginning, each by itself.
  std::ifstream Open() const;

 private:
  explicit SpooledInput(int descriptor) noexcept : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace weir
