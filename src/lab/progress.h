// How far long work has come: a line that is written again and again, with how much a second and
// how long it will take still. Where nobody watches, nothing is written.
#pragma once

#include <atomic>
#include <cstdint>
#include <ostream>
#include <string>

#include <weir/clock.h>

namespace weir::lab {

class Progress {
 public:
  struct Options {
    std::ostream* out = nullptr;  // Null: nobody watches.
    std::string what = "lines";   // Counted, in the plural.
    Clock* clock = nullptr;       // The machine's if null.
  };
  explicit Progress(Options options);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Removes the line.
  ~Progress();

  // How much there is in all, in whatever `Advance` counts as its share (bytes of the input,
  // seeds); 0 if nobody knows. From any thread, as are the others.
  void SetTotal(std::uint64_t total) noexcept { total_ = total; }
  // So many more things were done, which is that much more of the total. Costs nothing but an
  // addition unless it is time to write again.
  void Advance(std::uint64_t things, std::uint64_t share) noexcept;
  // Removes the line, so that something else can be written; it comes back by itself.
  void Clear() noexcept;

 private:
  void Write(SteadyTime now) noexcept;

  const Options options_;
  Clock& clock_;
  const SteadyTime began_;
  std::atomic<std::uint64_t> total_{0};
  std::atomic<std::uint64_t> things_{0};
  std::atomic<std::uint64_t> share_{0};
  std::atomic<std::int64_t> next_write_{0};  // Nanoseconds since it began.
  std::atomic<bool> is_shown_{false};
};

}  // namespace weir::lab
