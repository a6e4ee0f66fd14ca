// One connection with TLS, whichever side begins it: OpenSSL between two streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <openssl/ssl.h>

#include "net/loop.h"
#include "net/tls_wire.h"

namespace weir {

// OpenSSL's, shared by all connections that are made with it.
struct TlsKeys {
  struct Free {
    void operator()(SSL_CTX* unused) const noexcept { SSL_CTX_free(unused); }
  };
  std::unique_ptr<SSL_CTX, Free> context{};
};

// What is the same on both sides: from 1.2 on, and nothing of what TLS has regretted since.
Result<void> Prepare(TlsKeys& keys, const SSL_METHOD* side);

class TlsStream : public Stream, protected StreamHandler {
 public:
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream() override;

  void SetHandler(StreamHandler& handler) noexcept override { handler_ = &handler; }
  void Read(std::span<char> room) noexcept override;
  // Before the handshake is done nothing goes.
  std::optional<std::size_t> Write(std::string_view bytes) noexcept override;
  void AwaitWritable() noexcept override;
  void FinishWriting() noexcept override;
  void SetUserTimeout(Duration longest) noexcept override { below_->SetUserTimeout(longest); }
  std::string_view why_broken() const noexcept override;
  std::string_view peer() const noexcept override { return below_->peer(); }
  bool is_agreeing() const noexcept override { return state_ == State::kHandshake && has_heard_; }
  std::size_t buffered() const noexcept override {
    return wire_.in.capacity() + wire_.out.capacity();
  }

 protected:
  TlsStream(Loop& loop, const TlsKeys& keys);

  // To be set before the handshake begins.
  void SetBelow(std::unique_ptr<Stream> below) noexcept { below_ = std::move(below); }
  void BeginHandshake();
  // The stream below is connected, but nothing is to be done with it.
  void GiveUp() noexcept { state_ = State::kFailed; }
  // If the handshake is not done by then, it has failed.
  void SetPatience(Duration patience) { later_->Start(patience); }

  SSL* ssl() const noexcept { return ssl_.get(); }
  Stream& below() noexcept { return *below_; }
  StreamHandler& handler() noexcept { return *handler_; }
  // Whether the other side has sent anything at all.
  bool has_heard() const noexcept { return has_heard_; }
  // Goes on with what was asked for before the handshake was done. May end the stream.
  void Open();

  enum class Failure : std::uint8_t {
    kRefused,  // By either side, or it is no TLS at all.
    kEnded,    // The other side has gone,
    kTooSlow,  // or takes too long.
  };

 private:
  // --- What differs between the sides. Each may end the stream. ---
  virtual void OnHandshakeDone() = 0;
  virtual void OnHandshakeFailed(Failure failure, const std::string& why) = 0;
  // Why the other side's certificate is not accepted, if that is so.
  virtual std::string VerdictOnPeer() const = 0;
  // What is wrong with what has come of the handshake, before anything is spent on it, if anything
  // is.
  virtual std::string_view Objection(std::string_view /*fresh*/) { return {}; }
  // Whether the other side may just end the connection, without a farewell of TLS. Where it is
  // clear from what was sent whether that is complete, nobody on the way gains by cutting it.
  virtual bool MayJustEnd() const noexcept = 0;

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

  void Handshake();
  void FailHandshake(Failure failure, const std::string& why);
  std::string HandshakeTrouble(int code) const;
  void OnLater();
  void ReadBelow() noexcept;

  // Hands out what has come, as long as somebody reads.
  void Deliver();
  // Decrypts as much as there is and the room takes.
  std::size_t Decrypt(std::span<char> room);
  // Encrypts some more of what is to be sent next. False if the connection is lost.
  bool Encrypt(std::string_view bytes);
  // Sends what was encrypted, as far as it goes now. False if the connection is lost.
  bool Flush();

  StreamHandler* handler_ = nullptr;
  State state_ = State::kConnecting;
  End end_ = End::kNotYet;
  bool has_heard_ = false;
  bool end_below_ = false;  // The stream below has no more.
  bool write_lost_ = false;
  bool finishing_ = false;  // The stream below is to be told when all is sent.
  bool awaited_ = false;    // Somebody waits to write.
  bool delivering_ = false;
  bool* gone_ = nullptr;       // To be set by our end while somebody is being told something.
  std::size_t encrypted_ = 0;  // Of what is to be written next, because not all of it has gone.
  std::string why_{};
  std::span<char> room_{};  // Of the read that is under way.

  TlsWire wire_;
  const std::unique_ptr<SSL, Free> ssl_;
  const std::unique_ptr<Timer> later_;  // Ends the handshake; then delivers in a turn of its own.
  std::unique_ptr<Stream> below_;
};

}  // namespace weir
