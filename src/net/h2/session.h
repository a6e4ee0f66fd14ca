// The server's side of one HTTP/2 connection, by nghttp2: bytes in, requests out; answers in, bytes
// out. It knows nothing of what is asked.
//
//   if (!session.Feed(bytes, now)) ...    the last that will be read
//   session.TakeOutput(out);              to be sent
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <weir/time.h>

#include "net/byte_buffer.h"
#include "net/h2/frame_watch.h"

struct nghttp2_session;

namespace weir {

// Both texts stay good until the call that they are given to returns; `is_fixed` ones for ever.
struct H2Field {
  std::string_view name;  // In lower case.
  std::string_view value;
  bool is_fixed = false;
};

// A request and its answer. Belongs to the handler, which may derive from it.
struct H2Stream {
  std::int32_t id = 0;
  bool has_ended = false;    // The peer has sent all it wanted to.
  bool is_answered = false;  // Headers were sent.
  bool is_finished = false;  // Nothing will be added to the answer.
  bool is_deferred = false;  // Waits for more to send.
  bool pays = false;         // Once all of the answer has left, for frames of its peer.
  ByteBuffer out{};          // Of the body.
  // Sent behind the body. What it refers to stays until the stream is closed.
  std::span<const H2Field> trailers{};
};

// Told of what comes in. Answers may be given from within.
class H2Handler {
 public:
  // None: there is no room for it.
  virtual H2Stream* OnRequest(std::int32_t id) noexcept = 0;
  // False: this is too much, reset it.
  virtual bool OnHeader(H2Stream& stream, std::string_view name,
                        std::string_view value) noexcept = 0;
  virtual void OnHead(H2Stream& stream) noexcept = 0;
  virtual void OnData(H2Stream& stream, std::string_view bytes) noexcept = 0;
  virtual void OnEnd(H2Stream& stream) noexcept = 0;
  // Answered to the end, reset by either side, or lost with the connection.
  virtual void OnClosed(H2Stream& stream) noexcept = 0;
  // One request more than there may be at a time was refused.
  virtual void OnRefused() noexcept = 0;
  // Whether there are as many requests as there may be.
  virtual bool IsFull() const noexcept = 0;

 protected:
  ~H2Handler() = default;
};

class H2Session {
 public:
  struct Options {
    std::size_t streams = 100;                         // At a time.
    std::size_t header_bytes = std::size_t{16} << 10;  // Of one request.
  };
  // The handler must outlive it.
  H2Session(H2Handler& handler, const Options& options, SteadyTime now);
  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;
  // Closes all streams.
  ~H2Session();

  // False if the connection is to be closed once the output is sent.
  bool Feed(std::string_view bytes, SteadyTime now) noexcept;
  // Why that is so, if it is because of abuse.
  std::optional<H2Abuse> abuse() const noexcept { return abuse_; }
  // Since when something has been coming in that is not complete.
  std::optional<SteadyTime> amid_since() const noexcept { return watch_.amid_since(); }
  // What was sent is no HTTP/2 at all.
  bool is_other_protocol() const noexcept { return is_other_protocol_; }

  // Appends all that can be sent now.
  void TakeOutput(ByteBuffer& out) noexcept;

  // --- Answers. Who has not sent all of a request when it is answered is told not to. ---

  // The headers; a body follows, from stream.out.
  void Answer(H2Stream& stream, std::span<const H2Field> fields) noexcept;
  // Something was added to stream.out, or it is finished.
  void Resume(H2Stream& stream) noexcept;
  // Headers alone, and the end.
  void AnswerWithoutBody(H2Stream& stream, std::span<const H2Field> fields) noexcept;
  void Cancel(H2Stream& stream) noexcept;

  // --- The end. ---

  // Says that there will be one; then, that no more requests are taken up.
  void AnnounceEnd() noexcept;
  void RefuseNewRequests() noexcept;
  void EndWithError() noexcept;  // What is going on is not answered.

  // None if there is no such stream.
  H2Stream* Find(std::int32_t id) noexcept;

  // How many bytes it holds, those of streams not included.
  std::size_t bytes() const noexcept { return bytes_; }
  // How many streams there may be at a time.
  std::size_t streams() const noexcept { return options_.streams; }
  // Something is to be sent.
  bool has_output() const noexcept;
  bool is_over() const noexcept;
  // The peer was told that it broke the rules.
  bool is_broken() const noexcept { return is_broken_; }

 private:
  struct Hooks;  // Called by nghttp2.
  friend struct Hooks;
  struct Free {
    void operator()(nghttp2_session* session) const noexcept;
  };

  H2Handler& handler_;
  const Options options_;
  H2FrameWatch watch_;
  std::optional<H2Abuse> abuse_{};
  bool is_other_protocol_ = false;
  bool is_broken_ = false;
  SteadyTime now_;
  std::size_t bytes_ = 0;
  std::unique_ptr<nghttp2_session, Free> session_;
};

}  // namespace weir
