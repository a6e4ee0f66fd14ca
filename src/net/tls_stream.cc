#include "net/tls_stream.h"

#include <algorithm>
#include <utility>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "net/socket_address.h"

namespace weir {
namespace {

std::unexpected<Error> Failed(std::string message) {
  return std::unexpected(Error{ErrorCode::kInternal, std::move(message)});
}

BIO* NewMemory() { return BIO_new(BIO_s_mem()); }

}  // namespace

TlsStream::TlsStream(Loop& loop, const Endpoint& endpoint,
                     std::shared_ptr<const TlsClientContext> context,
                     std::function<void(Result<void>)> connected)
    : context_(std::move(context)),
      name_(context_->options_.server_name.empty() ? endpoint.host
                                                   : context_->options_.server_name),
      connected_(std::move(connected)),
      ssl_(SSL_new(context_->keys_->context.get())),
      incoming_(NewMemory()),
      outgoing_(NewMemory()),
      later_(loop.MakeTimer([this] { Deliver(); })),
      below_(
          loop.Connect(endpoint, [this](Result<void> result) { OnConnected(std::move(result)); })) {
  SSL_set_bio(ssl_.get(), incoming_, outgoing_);
  SSL_set_connect_state(ssl_.get());
}

TlsStream::~TlsStream() {
  if (gone_ != nullptr) *gone_ = true;
  // Who is told goodbye knows that nothing was cut off; if it does not go at once it does not go.
  if (state_ == State::kOpen && !write_lost_ && out_.empty()) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    Flush();
  }
  ERR_clear_error();
}

void TlsStream::OnConnected(Result<void> result) {
  below_->SetHandler(*this);
  if (result) result = ExpectName();
  if (!result) {
    state_ = State::kFailed;
    return Conclude(std::move(result));
  }
  state_ = State::kHandshake;
  Handshake();
}

Result<void> TlsStream::ExpectName() {
  const bool is_address =
      AddressWithoutLookup({.host = name_, .port = 0, .path = {}}).has_value() && !name_.empty();
  if (!is_address && !name_.empty() && SSL_set_tlsext_host_name(ssl_.get(), name_.c_str()) != 1) {
    return Failed("'" + name_ + "' is no name for a server: " + TakeTlsError());
  }
  if (!context_->options_.verify) return {};
  if (name_.empty()) return Failed("a unix socket has no name that a certificate could be for");
  X509_VERIFY_PARAM* const expected = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int done = is_address ? X509_VERIFY_PARAM_set1_ip_asc(expected, name_.c_str())
                              : X509_VERIFY_PARAM_set1_host(expected, name_.c_str(), 0);
  if (done != 1) return Failed("'" + name_ + "' is no name that a certificate could be for");
  return {};
}

void TlsStream::Handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) {
    if (!Flush()) return OnBroken();
    state_ = State::kOpen;
    return Conclude({});
  }
  const int code = SSL_get_error(ssl_.get(), done);
  if (code == SSL_ERROR_WANT_READ) {
    if (!Flush()) return OnBroken();
    return below_->Read(in_);
  }
  const std::string trouble = HandshakeTrouble(code);
  Flush();  // The alert that tells the server why.
  state_ = State::kFailed;
  Conclude(Failed(trouble));
}

std::string TlsStream::HandshakeTrouble(int code) const {
  const long verdict = SSL_get_verify_result(ssl_.get());
  if (context_->options_.verify && verdict != X509_V_OK) {
    const std::string reason = X509_verify_cert_error_string(verdict);
    const bool wrong_name =
        verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH;
    return "the server's certificate is not accepted: " + reason +
           (wrong_name ? ", it is not for " + name_ : "");
  }
  if (code != SSL_ERROR_SSL) return "the TLS handshake failed";
  const bool no_tls = ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER;
  return "the TLS handshake failed: " + TakeTlsError() +
         (no_tls ? "; does the server speak TLS there?" : "");
}

void TlsStream::Conclude(Result<void> result) {
  bool gone = false;
  gone_ = &gone;
  std::exchange(connected_, {})(std::move(result));
  if (gone) return;
  gone_ = nullptr;
}

void TlsStream::OnRead(std::size_t count) noexcept {
  if (count == 0) {
    end_below_ = true;
    if (state_ == State::kHandshake) return OnBroken();
  } else {
    BIO_write(incoming_, in_.data(), static_cast<int>(count));
  }
  if (state_ == State::kHandshake) return Handshake();
  if (state_ == State::kOpen) Deliver();
}

void TlsStream::OnHangUp() noexcept {
  if (state_ == State::kHandshake) return OnBroken();
  if (state_ == State::kOpen) handler_->OnHangUp();
}

void TlsStream::OnBroken() noexcept {
  write_lost_ = true;
  room_ = {};
  later_->Stop();
  const State before = std::exchange(state_, State::kFailed);
  if (before == State::kOpen) return handler_->OnBroken();
  if (before != State::kHandshake) return;
  Conclude(Failed("the server ended the connection during the TLS handshake"));
}

void TlsStream::OnWritable() noexcept {
  if (!Flush()) return OnBroken();
  if (state_ == State::kOpen && out_.empty() && std::exchange(awaited_, false)) {
    handler_->OnWritable();
  }
}

void TlsStream::Read(std::span<char> room) noexcept {
  room_ = room;
  if (delivering_) return;  // It will see.
  // Never from within: whoever reads does not expect to be told before he is done.
  const bool has_some = BIO_ctrl_pending(incoming_) > 0 || SSL_pending(ssl_.get()) > 0;
  if (has_some || end_below_ || end_ != End::kNotYet) return later_->Start(Duration(0));
  below_->Read(in_);
}

void TlsStream::Deliver() {
  bool gone = false;
  bool lost = false;
  gone_ = &gone;
  delivering_ = true;
  while (!room_.empty()) {
    const std::size_t count = Decrypt(room_);
    Flush();  // An answer of TLS's own, perhaps. That it is lost is told to whoever writes.
    if (count == 0 && end_ == End::kNotYet) {
      below_->Read(in_);
      break;
    }
    room_ = {};
    lost = count == 0 && end_ == End::kLost;
    if (lost) break;
    handler_->OnRead(count);
    if (gone) return;
    if (count == 0) break;
  }
  delivering_ = false;
  gone_ = nullptr;
  if (lost) OnBroken();
}

std::size_t TlsStream::Decrypt(std::span<char> room) {
  std::size_t count = 0;
  while (count < room.size() && end_ == End::kNotYet) {
    ERR_clear_error();
    std::size_t more = 0;
    const int done = SSL_read_ex(ssl_.get(), room.data() + count, room.size() - count, &more);
    if (done == 1) {
      count += more;
      continue;
    }
    const int code = SSL_get_error(ssl_.get(), done);
    if (code == SSL_ERROR_ZERO_RETURN) {
      end_ = End::kFarewell;
    } else if (code != SSL_ERROR_WANT_READ) {
      end_ = End::kLost;
      why_ = TakeTlsError();
    } else if (end_below_) {
      end_ = End::kLost;
      why_ = "the connection was cut off";
    } else {
      break;
    }
  }
  return count;
}

std::optional<std::size_t> TlsStream::Write(std::string_view bytes) noexcept {
  std::size_t taken = 0;
  while (!write_lost_ && out_.empty() && taken < bytes.size()) {
    while (taken < bytes.size() && BIO_ctrl_pending(outgoing_) < kMostAhead) {
      ERR_clear_error();
      std::size_t count = 0;
      const std::size_t most = std::min(bytes.size() - taken, kRecord);
      if (SSL_write_ex(ssl_.get(), bytes.data() + taken, most, &count) != 1) {
        if (why_.empty()) why_ = TakeTlsError();
        write_lost_ = true;
        return std::nullopt;
      }
      taken += count;
    }
    Flush();
  }
  if (write_lost_) return std::nullopt;
  return taken;
}

void TlsStream::AwaitWritable() noexcept {
  awaited_ = true;
  below_->AwaitWritable();
}

void TlsStream::FinishWriting() noexcept {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  finishing_ = true;
  Flush();
}

bool TlsStream::Flush() {
  if (write_lost_) return false;
  if (const std::size_t more = BIO_ctrl_pending(outgoing_); more > 0) {
    const int count = BIO_read(outgoing_, out_.Room(more), static_cast<int>(more));
    out_.Wrote(static_cast<std::size_t>(std::max(count, 0)));
  }
  if (!out_.empty()) {
    const std::optional<std::size_t> sent = below_->Write(out_.view());
    if (!sent) {
      write_lost_ = true;
      return false;
    }
    out_.Consume(*sent);
  }
  if (!out_.empty()) {
    below_->AwaitWritable();
  } else if (std::exchange(finishing_, false)) {
    below_->FinishWriting();
  }
  return true;
}

std::string_view TlsStream::why_broken() const noexcept {
  return why_.empty() ? below_->why_broken() : why_;
}

}  // namespace weir
