#include "net/tls_stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include <openssl/err.h>

namespace weir {
namespace {

// What is read goes through here at once, so that no connection needs such room of its own.
std::span<char> Scratch() noexcept {
  static thread_local std::array<char, 32'768> scratch;
  return scratch;
}

// Nobody is there to be asked for a password.
int NoPassword(char* /*text*/, int /*size*/, int /*for_writing*/, void* /*nothing*/) { return -1; }

}  // namespace

Result<void> Prepare(TlsKeys& keys, const SSL_METHOD* side) {
  ERR_clear_error();
  SSL_CTX* const context = SSL_CTX_new(side);
  if (context == nullptr) {
    return std::unexpected(
        Error{ErrorCode::kInternal, "OpenSSL cannot be used: " + TakeTlsError()});
  }
  keys.context.reset(context);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(context, &NoPassword);
  return {};
}

TlsStream::TlsStream(Loop& loop, const TlsKeys& keys)
    : ssl_(SSL_new(keys.context.get())), later_(loop.MakeTimer([this] { OnLater(); })) {
  Attach(ssl_.get(), wire_);
}

TlsStream::~TlsStream() {
  if (gone_ != nullptr) *gone_ = true;
  // Who is told goodbye knows that nothing was cut off; if it does not go at once it does not go.
  if (state_ == State::kOpen && !write_lost_ && wire_.out.empty()) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    Flush();
  }
  ERR_clear_error();
}

void TlsStream::BeginHandshake() {
  below_->SetHandler(*this);
  state_ = State::kHandshake;
  Handshake();
}

void TlsStream::Handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) {
    if (!Flush()) return OnBroken();
    state_ = State::kOpen;
    later_->Stop();
    return OnHandshakeDone();
  }
  const int code = SSL_get_error(ssl_.get(), done);
  if (code == SSL_ERROR_WANT_READ) {
    if (!Flush()) return OnBroken();
    return ReadBelow();
  }
  const std::string trouble = HandshakeTrouble(code);
  Flush();  // The alert that tells the other side why.
  FailHandshake(Failure::kRefused, trouble);
}

std::string TlsStream::HandshakeTrouble(int code) const {
  if (std::string verdict = VerdictOnPeer(); !verdict.empty()) return verdict;
  if (code != SSL_ERROR_SSL) return {};
  const bool no_tls = ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER;
  return TakeTlsError() + (no_tls ? "; is it TLS that is spoken there?" : "");
}

void TlsStream::FailHandshake(Failure failure, const std::string& why) {
  state_ = State::kFailed;
  write_lost_ = true;
  room_ = {};
  later_->Stop();
  OnHandshakeFailed(failure, why);
}

void TlsStream::Open() {
  if (awaited_) below_->AwaitWritable();
  Deliver();
}

void TlsStream::OnLater() {
  if (state_ == State::kOpen) return Deliver();
  if (state_ == State::kHandshake) FailHandshake(Failure::kTooSlow, {});
}

void TlsStream::ReadBelow() noexcept { below_->Read(Scratch()); }

void TlsStream::OnRead(std::size_t count) noexcept {
  if (state_ == State::kFailed) return;
  if (count == 0) {
    end_below_ = true;
    if (state_ == State::kHandshake) return OnBroken();
    return Deliver();
  }
  has_heard_ = true;
  const std::string_view fresh(Scratch().data(), count);
  wire_.in.Append(fresh);
  if (state_ == State::kOpen) return Deliver();
  if (const std::string_view objection = Objection(fresh); !objection.empty()) {
    return FailHandshake(Failure::kRefused, std::string(objection));
  }
  Handshake();
}

void TlsStream::OnHangUp() noexcept {
  if (state_ == State::kHandshake) return OnBroken();
  if (state_ == State::kOpen) handler_->OnHangUp();
}

void TlsStream::OnBroken() noexcept {
  if (state_ == State::kHandshake) return FailHandshake(Failure::kEnded, {});
  write_lost_ = true;
  room_ = {};
  later_->Stop();
  if (std::exchange(state_, State::kFailed) == State::kOpen) handler_->OnBroken();
}

void TlsStream::OnWritable() noexcept {
  if (!Flush()) return OnBroken();
  if (state_ == State::kOpen && wire_.out.empty() && std::exchange(awaited_, false)) {
    handler_->OnWritable();
  }
}

void TlsStream::Read(std::span<char> room) noexcept {
  room_ = room;
  if (delivering_ || state_ != State::kOpen) return;  // It will see.
  // Never from within: whoever reads does not expect to be told before he is done.
  const bool has_some = !wire_.in.empty() || SSL_pending(ssl_.get()) > 0;
  if (has_some || end_below_ || end_ != End::kNotYet) return later_->Start(Duration(0));
  ReadBelow();
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
      ReadBelow();
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
    const bool said_farewell = code == SSL_ERROR_ZERO_RETURN;
    if (!said_farewell && code != SSL_ERROR_WANT_READ) {
      end_ = End::kLost;
      why_ = TakeTlsError();
    } else if (!said_farewell && wire_.out.size() > 2 * kMostAhead) {
      end_ = End::kLost;
      why_ = "what TLS has to say is asked for and not taken";
    } else if (said_farewell || (end_below_ && MayJustEnd())) {
      end_ = End::kFarewell;
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
  if (state_ == State::kHandshake) return 0;
  std::size_t sent = 0;
  while (!write_lost_ && sent < bytes.size()) {
    if (wire_.out.empty() && !Encrypt(bytes.substr(sent))) return std::nullopt;
    Flush();
    if (!wire_.out.empty()) break;
    sent += std::exchange(encrypted_, 0);
  }
  if (write_lost_) return std::nullopt;
  return sent;
}

bool TlsStream::Encrypt(std::string_view bytes) {
  bytes.remove_prefix(encrypted_);
  while (!bytes.empty() && wire_.out.size() < kMostAhead) {
    ERR_clear_error();
    std::size_t count = 0;
    const std::size_t most = std::min(bytes.size(), kRecord);
    if (SSL_write_ex(ssl_.get(), bytes.data(), most, &count) != 1) {
      if (why_.empty()) why_ = TakeTlsError();
      write_lost_ = true;
      return false;
    }
    encrypted_ += count;
    bytes.remove_prefix(count);
  }
  return true;
}

void TlsStream::AwaitWritable() noexcept {
  awaited_ = true;
  if (state_ == State::kOpen) below_->AwaitWritable();
}

void TlsStream::FinishWriting() noexcept {
  if (state_ != State::kOpen) {
    // Nothing was said yet, and nothing will be.
    state_ = State::kFailed;
    later_->Stop();
    return below_->FinishWriting();
  }
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  finishing_ = true;
  Flush();
}

bool TlsStream::Flush() {
  if (write_lost_) return false;
  if (!wire_.out.empty()) {
    const std::optional<std::size_t> sent = below_->Write(wire_.out.view());
    if (!sent) {
      write_lost_ = true;
      return false;
    }
    wire_.out.Consume(*sent);
  }
  wire_.GiveBack();
  if (!wire_.out.empty()) {
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
