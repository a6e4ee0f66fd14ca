// The bytes of a log: from a file or standard input, plain or compressed. What compressed it is
// told by how it begins, not by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>

#include <weir/result.h>

namespace weir::lab {

class LogInput {
 public:
  // The error names the file.
  static Result<std::unique_ptr<LogInput>> Open(const std::string& file,
                                                std::istream& standard_input);
  virtual ~LogInput() = default;

  // Fills `room` as far as there is something. Less than all of it: this was the end.
  virtual std::size_t Read(std::span<char> room) = 0;

  // Why it ended before its end: damaged, cut off, cannot be read any further. Empty if it did not.
  virtual const std::string& cut_short() const = 0;
  // How much of what is on the disk was read; how much there is, 0 if nobody knows.
  virtual std::uint64_t bytes_read() const = 0;
  virtual std::uint64_t bytes() const = 0;
};

// Whether it ended because it cannot be read, and not because that was all. Standard input does not
// say so itself.
bool HasFailed(const std::istream& in);

}  // namespace weir::lab
