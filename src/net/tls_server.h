// TLS for those who connect to us, over any stream, by OpenSSL: from 1.2 on, at OpenSSL's second
// level of security, with certificates of clients if they are wanted.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <weir/result.h>
#include <weir/time.h>

#include "net/loop.h"

namespace weir {

struct TlsKeys;  // OpenSSL's.

// A file of certificates or keys that was read.
struct PemFile {
  std::string path{};  // For messages; empty: there is none.
  std::string text{};
};

struct TlsServerOptions {
  PemFile certificate{};  // What we show, with those that vouch for it behind it.
  PemFile key{};
  PemFile client_ca{};  // If there is one, clients must show a certificate that it vouches for.
  // The one protocol that is spoken (http/1.1, h2), if it has a name. A client that names protocols
  // must name this one among them; one that names none is let in.
  std::string protocol{};
};

// Immutable; to be shared by all connections and threads. A session is resumed only under the
// context that it began with, and never where clients must show a certificate: each connection
// shows it.
class TlsServerContext {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const TlsServerContext>> Make(
      const TlsServerOptions& options);
  TlsServerContext(const TlsServerContext&) = delete;
  TlsServerContext& operator=(const TlsServerContext&) = delete;
  ~TlsServerContext();

  // When our certificate ends.
  WallTime expires() const noexcept { return expires_; }

 private:
  friend class TlsServerStream;
  TlsServerContext();

  std::unique_ptr<TlsKeys> keys_;
  std::string protocol_;  // As clients list them: its length, then its name.
  WallTime expires_{};
};

struct TlsFailure {
  std::string_view peer{};
  bool too_slow = false;  // Nothing is wrong but that the client takes too long.
  std::string why{};
};

struct TlsAcceptance {
  Duration patience{};  // How long the handshake may take.
  // Told, before the handler is told that the stream is broken, why there was no handshake. Not if
  // the client left without a word.
  std::function<void(const TlsFailure&)> on_failure{};
};

// A stream above one that was accepted. It can be used at once: the handshake begins with its first
// handler, nothing is read or written before it is done, and one that fails is a broken stream. A
// client that ends its connection without a farewell of TLS has ended it.
std::unique_ptr<Stream> AcceptTls(Loop& loop, std::unique_ptr<Stream> accepted,
                                  std::shared_ptr<const TlsServerContext> context,
                                  TlsAcceptance acceptance);

}  // namespace weir
