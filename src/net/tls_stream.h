// One connection with TLS: OpenSSL between two pieces of memory, and those between two streams.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include <openssl/ssl.h>

#include "net/byte_buffer.h"
#include "net/loop.h"
#include "net/tls.h"

namespace weir {

struct TlsClientContext::Keys {
  struct Free {
    void operator()(SSL_CTX* unused) const noexcept { SSL_CTX_free(unused); }
  };
  std::unique_ptr<SSL_CTX, Free> context{};
};

// What OpenSSL complained of first on this thread, and forgets.
std::string TakeTlsError();

class TlsStream final : public Stream, private StreamHandler {
 public:
  TlsStream(Loop& loop, const Endpoint& endpoint, std::shared_ptr<const TlsClientContext> context,
            std::function<void(Result<void>)> connected);
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream() override;

  void SetHandler(StreamHandler& handler) noexcept override { handler_ = &handler; }
  void Read(std::span<char> room) noexcept override;
  std::optional<std::size_t> Write(std::string_view bytes) noexcept override;
  void AwaitWritable() noexcept override;
  void FinishWriting() noexcept override;
  void SetUserTimeout(Duration longest) noexcept override { below_->SetUserTimeout(longest); }
  std::string_view why_broken() const noexcept override;
  std::string_view peer() const noexcept override { return below_->peer(); }

 private:
  enum class State : std::uint8_t { kConnecting, kHandshake, kOpen, kFailed };
  // How reading has ended.
  enum class End : std::uint8_t { kNotYet, kFarewell, kLost };
  struct Free {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };
  // What is encrypted ahead of what the stream below takes.
  static constexpr std::size_t kMostAhead = 65'536;
  static constexpr std::size_t kRecord = 16'384;

  void OnRead(std::size_t count) noexcept override;
  void OnHangUp() noexcept override;
  void OnWritable() noexcept override;
  void OnBroken() noexcept override;

  void OnConnected(Result<void> result);
  // What the certificate must be for, or an error.
  Result<void> ExpectName();
  void Handshake();
  std::string HandshakeTrouble(int code) const;
  void Conclude(Result<void> result);

  // Hands out what has come, as long as somebody reads.
  void Deliver();
  // Decrypts as much as there is and the room takes.
  std::size_t Decrypt(std::span<char> room);
  // Sends what was encrypted, as far as it goes now. False if the connection is lost.
  bool Flush();

  const std::shared_ptr<const TlsClientContext> context_;
  const std::string name_;  // What the certificate must be for.
  std::function<void(Result<void>)> connected_;
  StreamHandler* handler_ = nullptr;
  State state_ = State::kConnecting;
  End end_ = End::kNotYet;
  bool end_below_ = false;  // The stream below has no more.
  bool write_lost_ = false;
  bool finishing_ = false;  // The stream below is to be told when all is sent.
  bool awaited_ = false;    // Somebody waits to write.
  bool delivering_ = false;
  bool* gone_ = nullptr;  // To be set by our end while somebody is being told something.
  std::string why_{};
  std::span<char> room_{};  // Of the read that is under way.

  const std::unique_ptr<SSL, Free> ssl_;
  BIO* incoming_;   // Encrypted. Both belong to ssl_.
  BIO* outgoing_;   // Encrypted.
  ByteBuffer out_;  // What came from there, and is not sent yet.
  std::array<char, kRecord> in_{};
  const std::unique_ptr<Timer> later_;  // Delivers in a turn of its own.
  std::unique_ptr<Stream> below_;
};

}  // namespace weir
