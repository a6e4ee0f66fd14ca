#include "server/tls_files.h"

#include <array>
#include <filesystem>
#include <utility>

#include "base/hash.h"
#include "base/mix.h"
#include "policy/file_text.h"

namespace weir {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

}  // namespace

std::vector<std::string> TlsFiles::Paths(const ListenerSpec& spec) const {
  std::vector<std::string> paths;
  for (const std::string& file : {spec.tls_certificate, spec.tls_key, spec.tls_client_ca}) {
    if (!file.empty()) paths.push_back((std::filesystem::path(folder_) / file).string());
  }
  return paths;
}

TlsFiles::Contents TlsFiles::Read(const ListenerSpec& spec) const {
  static const KeyHasher kHasher(HashKind::kXxh3);
  Contents contents{.options = {.protocol = protocol_}};
  TlsServerOptions& options = contents.options;
  const std::vector<std::string> paths = Paths(spec);
  // A policy names the first two, or none.
  const std::array<PemFile*, 3> files = {&options.certificate, &options.key, &options.client_ca};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Result<std::string> text = ReadWholeFile(paths[i], kMostBytes);
    contents.digest = Mix(contents.digest ^ kHasher(paths[i]));
    contents.digest = Mix(contents.digest ^ kHasher(text ? *text : text.error().message));
    if (text) {
      *files[i] = {.path = paths[i], .text = *std::move(text)};
    } else if (!contents.error) {
      contents.error = std::move(text.error());
    }
  }
  return contents;
}

Result<TlsFiles::Context> TlsFiles::Make(const Contents& contents) {
  if (contents.error) return std::unexpected(*contents.error);
  Result<Context> made = TlsServerContext::Make(contents.options);
  if (!made) return made;
  in_force_ = contents.digest;
  told_.reset();
  wrong_since_.reset();
  expires_.store((*made)->expires(), std::memory_order_relaxed);
  return made;
}

Result<TlsFiles::Context> TlsFiles::Load(const ListenerSpec& spec) { return Make(Read(spec)); }

TlsFiles::Looked TlsFiles::Look(const ListenerSpec& spec, SteadyTime now, bool at_once) {
  const Contents contents = Read(spec);
  if (contents.digest == in_force_) {
    told_.reset();
    wrong_since_.reset();
    return {};
  }
  if (told_ == contents.digest && !at_once) {
    wrong_since_.reset();
    return {};
  }
  Result<Context> made = Make(contents);
  if (made) {
    applied_.fetch_add(1, std::memory_order_relaxed);
    return {.context = *std::move(made)};
  }
  if (!wrong_since_) wrong_since_ = now;
  // The other file may be replaced next.
  if (!at_once && now - *wrong_since_ < kGrace) return {};
  told_ = contents.digest;
  wrong_since_.reset();
  refused_.fetch_add(1, std::memory_order_relaxed);
  return {.complaint = made.error().message};
}

std::string ExpiryWarning(WallTime expires, WallTime now) {
  constexpr Duration kSoon = std::chrono::days(7);
  if (expires <= now) return "the certificate has expired; clients will not accept it";
  if (expires - now > kSoon) return {};
  const auto left = std::chrono::floor<std::chrono::hours>(expires - now).count();
  return "the certificate expires in " +
         (left >= 48 ? std::to_string(left / 24) + " days" : std::to_string(left) + " hours");
}

}  // namespace weir
