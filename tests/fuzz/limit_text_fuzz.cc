// Whatever the text of a limit is, reading it must end well; and a limit that was read must be
// written as text that gives the same limit again.
//
// The first byte picks the defaults: its low four bits the algorithm, then the bits for calendar
// windows, strict, queue and a burst. The rest is the text.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <weir/limit.h>

namespace {

weir::LimitSpec DefaultsFrom(unsigned byte) {
  weir::LimitSpec defaults;
  defaults.algorithm = static_cast<weir::Algorithm>((byte & 15) % 6);
  if ((byte & 16) != 0) defaults.align = weir::Align::kCalendar;
  defaults.strict = (byte & 32) != 0;
  defaults.queue = (byte & 64) != 0;
  if ((byte & 128) != 0) defaults.burst = 7;
  return defaults;
}

[[noreturn]] void Fail(const char* what, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", what, text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const weir::LimitSpec defaults = DefaultsFrom(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const weir::Result<weir::Limit> limit = weir::Limit::Parse(text, defaults);
  if (!limit.has_value()) {
    if (limit.error().message.empty()) Fail("refused without a reason", std::string(text));
    return 0;
  }
  const std::string written = limit->ToString();
  const weir::Result<weir::Limit> again = weir::Limit::Parse(written, defaults);
  if (!again.has_value()) Fail("not read back", written + ": " + again.error().message);
  if (again->spec() != limit->spec()) Fail("read back as another limit", written);
  return 0;
}
