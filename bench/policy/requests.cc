#include "requests.h"

#include <cstdio>

#include "harness/random.h"
#include "harness/require.h"

namespace weir::bench {
namespace {

constexpr std::string_view kUserAgent =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 "
    "Safari/537.36";
constexpr std::string_view kAccept =
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
constexpr std::uint64_t kAddresses = kUsers;

std::string PathOf(std::size_t area, std::uint64_t item) {
  const std::string below = "/api/v1/area" + std::to_string(area) + "/";
  const std::string id = std::to_string(item);
  switch (KindOf(area)) {
    case AreaKind::kList:
      return below + "list";
    case AreaKind::kItem:
      return below + id;
    case AreaKind::kBelow:
      return below + id + "/items/" + std::to_string(item % 17);
    default:
      return below + id + "/items";
  }
}

std::string_view MethodOf(std::size_t area) {
  switch (KindOf(area)) {
    case AreaKind::kBelow:
      return "POST";
    case AreaKind::kClient:
      return "PUT";
    default:
      return "GET";
  }
}

}  // namespace

// Outside 10.0.0.0/8, where the proxy is.
AddressSequence::AddressSequence(std::size_t length) : texts_(length), sizes_(length) {
  Random random(7);
  for (std::size_t i = 0; i < length; ++i) {
    const std::uint64_t bits = Scramble(random.Below(kAddresses) + 1);
    const auto byte = [&](int at) { return static_cast<unsigned>(bits >> (8 * at) & 0xff); };
    char* const out = texts_[i].data();
    const int size =
        byte(7) % 4 == 0
            ? std::snprintf(out, texts_[i].size(), "2001:db8:%x:%x::%x", byte(0) << 8 | byte(1),
                            byte(2) << 8 | byte(3), byte(4) + 1)
            : std::snprintf(out, texts_[i].size(), "%u.%u.%u.%u", 100 + byte(0) % 100, byte(1),
                            byte(2), byte(3));
    sizes_[i] = static_cast<std::uint8_t>(size);
  }
}

Requests::Requests() {
  for (std::size_t i = 0; i < kShapes; ++i) Fill(i, shapes_[i]);
}

std::string_view Requests::Shape::Keep(std::string_view part) {
  Require(used + part.size() <= text.size(), "the texts of a request fit");
  char* const start = text.data() + used;
  used += part.copy(start, part.size());
  return {start, part.size()};
}

void Requests::Fill(std::size_t number, Shape& shape) {
  // Scrambled, so that no processor learns the order of the kinds.
  const std::uint64_t bits = Scramble(number + 1);
  const std::size_t area = bits % kAreas;
  const std::string_view path = shape.Keep(PathOf(area, bits >> 40) + "?page=3");
  const std::string_view client = shape.Keep(
      KindOf(area) == AreaKind::kClient ? "app" + std::to_string(area) : std::string("web"));
  const std::string_view cookie = shape.Keep("session=" + std::to_string(bits) + "; theme=dark");
  shape.headers = {{{"Host", kHost},
                    {"User-Agent", kUserAgent},
                    {"Accept", kAccept},
                    {"Accept-Language", "en-GB,en;q=0.7,de;q=0.3"},
                    {"Accept-Encoding", "gzip, deflate, br, zstd"},
                    {"Cookie", cookie},
                    {"X-Client", client},
                    {"X-Tier", "pro"},
                    {"X-Forwarded-For", ""},
                    {"X-User-Id", ""}}};
  shape.cookies = {{{"session", cookie.substr(8, cookie.find(';') - 8)}, {"theme", "dark"}}};
  shape.query = {{{"page", "3"}}};
  shape.request = {.org = "acme",
                   .tier = "pro",
                   .method = MethodOf(area),
                   .path = path,
                   .host = kHost,
                   .headers = shape.headers,
                   .cookies = shape.cookies,
                   .query = shape.query};
  shape.incoming = {.peer = kProxy,
                    .method = MethodOf(area),
                    .path = path,
                    .host = kHost,
                    .headers = shape.headers};
}

}  // namespace weir::bench
