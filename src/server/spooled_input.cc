#include "server/spooled_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "lab/log/log_input.h"

namespace weir {
namespace {

Error Failed(const std::string& what, const std::string& folder) {
  return {ErrorCode::kInternal, "standard input is read more than once and has to be kept in " +
                                    folder + " (TMPDIR): " + what + ": " +
                                    std::generic_category().message(errno)};
}

bool WriteAll(int descriptor, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

Result<SpooledInput> SpooledInput::Take(std::istream& in) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets any.
  const char* const wanted = std::getenv("TMPDIR");
  const std::string folder = wanted != nullptr && *wanted != '\0' ? wanted : "/tmp";
  std::string name = folder + "/weir-XXXXXX";
  SpooledInput spooled(::mkostemp(name.data(), O_CLOEXEC));
  if (spooled.descriptor_ < 0) return std::unexpected(Failed("open", folder));
  ::unlink(name.c_str());
  constexpr std::size_t kPiece = 1U << 18U;
  const auto piece = std::make_unique<char[]>(kPiece);
  while (in) {
    in.read(piece.get(), kPiece);
    if (!WriteAll(spooled.descriptor_, piece.get(), static_cast<std::size_t>(in.gcount()))) {
      return std::unexpected(Failed("write", folder));
    }
  }
  if (lab::HasFailed(in)) {
    return std::unexpected(
        Error{ErrorCode::kInternal, "standard input: it cannot be read any further"});
  }
  return spooled;
}

SpooledInput::SpooledInput(SpooledInput&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

SpooledInput::~SpooledInput() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::ifstream SpooledInput::Open() const {
  return std::ifstream("/proc/self/fd/" + std::to_string(descriptor_), std::ios::binary);
}

}  // namespace weir
