#include "server/listener.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "policy/keyed_hash.h"

namespace weir {
namespace {

constexpr std::size_t kShortToken = 16;
constexpr std::string_view kFile = "file:";

// As clients of TLS name what is spoken; there is no name for RESP.
std::string NameInTls(const std::string& protocol) {
  if (protocol == "http") return "http/1.1";
  if (protocol == "grpc") return "h2";
  return {};
}

}  // namespace

Listener::Listener(std::string protocol, std::string folder, const Log& log)
    : protocol_(std::move(protocol)),
      folder_(std::move(folder)),
      log_(log),
      handshake_log_(log, protocol_) {}

Result<void> Listener::Begin(const ListenerSpec& spec, ManageRight manage) {
  spec_ = spec;
  manage_ = manage;
  Result<Access> access = ReadAccess();
  if (!access) return std::unexpected(access.error());
  credentials_.access = *std::move(access);
  if (spec.tls_certificate.empty()) return {};
  tls_.emplace(NameInTls(protocol_), folder_);
  Result<TlsFiles::Context> context = tls_->Load(spec);
  if (!context) return std::unexpected(context.error());
  credentials_.tls = *std::move(context);
  return {};
}

Credentials Listener::Settle(const Place& place) {
  place_ = place;
  credentials_.access.manage_open = MayAllManage();
  return credentials_;
}

bool Listener::MayAllManage() const noexcept {
  return manage_ == ManageRight::kOpen && place_.is_loopback;
}

std::string Listener::PathOf(const std::string& file) const {
  return (std::filesystem::path(folder_) / file).string();
}

Result<std::string> Listener::ReadToken(const std::string& source) const {
  if (source.empty()) return std::string();
  if (!source.starts_with(kFile)) return ReadSecret(source, 1);
  return ReadSecret(std::string(kFile) + PathOf(source.substr(kFile.size())), 1);
}

Result<Access> Listener::ReadAccess() const {
  Result<std::string> token = ReadToken(spec_.token);
  if (!token) return std::unexpected(token.error());
  Result<std::string> manage_token = ReadToken(spec_.manage_token);
  if (!manage_token) return std::unexpected(manage_token.error());
  return Access{.token = *std::move(token),
                .manage_token = *std::move(manage_token),
                .manage_open = MayAllManage()};
}

void Listener::Adopt(const ListenerSpec& spec, ManageRight manage) {
  manage_ = manage;
  // What was written for another address, or for one that speaks TLS or does not, might let people
  // in here whom nobody meant to.
  if (spec.address != spec_.address) return;
  if (spec.tls_certificate.empty() != spec_.tls_certificate.empty()) return;
  spec_.token = spec.token;
  spec_.manage_token = spec.manage_token;
  spec_.tls_certificate = spec.tls_certificate;
  spec_.tls_key = spec.tls_key;
  spec_.tls_client_ca = spec.tls_client_ca;
}

std::optional<Credentials> Listener::Refresh(const Now& now, bool at_once) {
  const bool new_access = RefreshAccess(at_once);
  const bool new_tls = tls_ && RefreshTls(now.steady, at_once);
  if (!new_access && !new_tls) return std::nullopt;
  for (const std::string& warning : Warnings(now.wall)) log_.Warn(warning);
  return credentials_;
}

bool Listener::RefreshAccess(bool at_once) {
  Result<Access> access = ReadAccess();
  if (!access) {
    if (access.error().message == complaint_ && !at_once) return false;
    complaint_ = access.error().message;
    Say(Log::Level::kError, complaint_ + "; the tokens that were in force stay");
    return false;
  }
  complaint_.clear();
  if (*access == credentials_.access) return false;
  credentials_.access = *std::move(access);
  Say(Log::Level::kInfo, "other tokens, or another right to manage, are in force");
  return true;
}

bool Listener::RefreshTls(SteadyTime now, bool at_once) {
  TlsFiles::Looked looked = tls_->Look(spec_, now, at_once);
  if (!looked.complaint.empty()) {
    Say(Log::Level::kError, looked.complaint + "; the certificate that was in force stays");
  }
  if (!looked.context) return false;
  credentials_.tls = std::move(looked.context);
  Say(Log::Level::kInfo, "another certificate is in force");
  return true;
}

std::vector<std::string> Listener::Files() const {
  std::vector<std::string> files = tls_ ? tls_->Paths(spec_) : std::vector<std::string>();
  for (const std::string& source : {spec_.token, spec_.manage_token}) {
    if (source.starts_with(kFile)) files.push_back(PathOf(source.substr(kFile.size())));
  }
  return files;
}

std::vector<std::string> Listener::Warnings(WallTime now) const {
  const Access& access = credentials_.access;
  std::vector<std::string> warnings;
  const auto warn = [&](std::string_view text) {
    warnings.push_back(place_.address + ": " + std::string(text));
  };
  if (tls_) {
    if (const std::string warning = ExpiryWarning(tls_->expires(), now); !warning.empty()) {
      warn(warning);
    }
  }
  if (!place_.is_loopback && access.token.empty() && spec_.tls_client_ca.empty()) {
    warn("everybody who reaches it may use it; set a token");
  }
  if (manage_ == ManageRight::kOpen && !access.manage_open) {
    warn("manage: open is for loopback and unix sockets only");
  }
  if (!access.token.empty() && access.token == access.manage_token) {
    warn("token and manage_token are the same; whoever has one manages");
  }
  if (!access.token.empty() && access.token.size() < kShortToken) {
    warn("the token is short; 16 characters and more are hard to guess");
  }
  return warnings;
}

void Listener::Say(Log::Level level, const std::string& text) const {
  log_.Write(level, "listen: " + protocol_ + ": " + text);
}

}  // namespace weir
