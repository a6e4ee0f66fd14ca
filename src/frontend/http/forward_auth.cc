#include "frontend/http/forward_auth.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "frontend/invalid_argument.h"

namespace weir {
namespace {

using http_bytes::IsSameName;

bool IsSchemeByte(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
}

struct SplitUri {
  std::string_view host{};  // Empty if there is none.
  std::string_view path{};  // With the query.
};

// Of http://name@host:80/path?query. What begins with a slash has no host, be it two of them.
SplitUri Split(std::string_view uri) noexcept {
  const std::size_t scheme = std::min(uri.find("://"), uri.size());
  const bool has_host =
      scheme > 0 && scheme < uri.size() && std::ranges::all_of(uri.substr(0, scheme), IsSchemeByte);
  if (!has_host) return {.path = uri};
  const std::string_view rest = uri.substr(scheme + 3);
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  const std::string_view authority = rest.substr(0, end);
  return {.host = authority.substr(authority.rfind('@') + 1), .path = rest.substr(end)};
}

// Each proxy on the way adds the host it saw; the last is the one that asks.
std::string_view LastOf(std::string_view list) noexcept {
  std::string_view last = list.substr(list.rfind(',') + 1);
  while (!last.empty() && http_bytes::IsBlank(last.front())) last.remove_prefix(1);
  return last;
}

// What the headers tell. An empty one tells nothing.
class ToldRequest {
 public:
  // False if it contradicts those before it.
  bool Note(const NamedValue& header) noexcept {
    const std::string_view name = header.name;
    if (header.value.empty()) return true;
    switch (name.size()) {
      case 14:
        return (!IsSameName(name, "x-original-uri") && !IsSameName(name, "x-original-url")) ||
               NoteUri(header.value);
      case 15:
        return !IsSameName(name, "x-forwarded-uri") || NoteUri(header.value);
      case 16:
        return !IsSameName(name, "x-forwarded-host") || NoteOnce(host_, LastOf(header.value));
      case 17:
        return !IsSameName(name, "x-original-method") || NoteOnce(method_, header.value);
      case 18:
        return !IsSameName(name, "x-forwarded-method") || NoteOnce(method_, header.value);
      default:
        return true;
    }
  }

  bool has_uri() const noexcept { return has_uri_; }
  std::string_view uri() const noexcept { return uri_; }
  std::string_view method() const noexcept { return method_; }
  std::string_view host() const noexcept { return host_.empty() ? uri_host_ : host_; }

 private:
  static bool NoteOnce(std::string_view& kept, std::string_view value) noexcept {
    if (!kept.empty() && kept != value) return false;
    kept = value;
    return true;
  }

  // With a host or without: it is the path that must not differ.
  bool NoteUri(std::string_view uri) noexcept {
    const SplitUri split = Split(uri);
    if (std::exchange(has_uri_, true) && uri_ != split.path) return false;
    uri_ = split.path;
    return split.host.empty() || NoteOnce(uri_host_, split.host);
  }

  bool has_uri_ = false;
  std::string_view uri_{};  // Without a host.
  std::string_view uri_host_{};
  std::string_view method_{};
  std::string_view host_{};
};

// The path of a URI without a host, as a request would have it: never empty.
std::string_view PathOf(std::string_view uri, std::string& buffer) {
  if (uri.empty()) return "/";
  if (!uri.starts_with('?') && !uri.starts_with('#')) return uri;
  buffer.assign("/").append(uri);
  return buffer;
}

}  // namespace

bool WantsDenialsBy403(std::string_view query) noexcept {
  constexpr std::string_view kName = "deny_status=";
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (!pair.starts_with(kName)) continue;
    const std::string_view status = pair.substr(kName.size());
    if (status == "403" || status == "429") return status == "403";
  }
  return false;
}

Result<Incoming> OriginalRequest(const AuthRequest& request, std::string& buffer) {
  const HttpHead& head = request.head;
  Incoming original{
      .peer = request.peer, .method = head.method, .host = head.host, .headers = head.headers()};
  ToldRequest told;
  if (request.trusted) {
    const bool agree = std::ranges::all_of(
        head.headers(), [&](const NamedValue& header) { return told.Note(header); });
    if (!agree) {
      return std::unexpected(InvalidArgument(
          "X-Forwarded-Method, -Uri or -Host is there twice, or says something else than "
          "X-Original-Method, -URI or -URL: the proxy must remove those that its client sent"));
    }
  }
  original.path = PathOf(told.has_uri() ? told.uri() : request.below, buffer);
  if (!told.method().empty()) original.method = told.method();
  if (!told.host().empty()) original.host = told.host();
  if (!std::ranges::all_of(original.method, http_bytes::IsToken)) {
    return std::unexpected(InvalidArgument("X-Forwarded-Method or X-Original-Method is no method"));
  }
  return original;
}

}  // namespace weir
