// A socket that listens. Opened before the loops that accept from it run, so that a port that is
// taken is found out at the start.
#pragma once

#include <utility>

#include <weir/result.h>

#include "net/endpoint.h"

namespace weir {

class ListeningSocket {
 public:
  // An error, kConflict, if anybody listens there already. With port 0 the system chooses one: see
  // endpoint(). A unix socket that nobody listens on any more is replaced; it is for its owner and
  // group, and removed at the end.
  [[nodiscard]] static Result<ListeningSocket> Open(const Endpoint& endpoint);

  // One that was opened by somebody else, who keeps it when this ends: those who have connected by
  // then, and those who do afterwards, wait for whoever listens there next. An error if it is not a
  // socket for streams that listens.
  [[nodiscard]] static Result<ListeningSocket> Adopt(int fd);

  // Another one for the same address, for another thread: on TCP the kernel spreads connections
  // between them; a unix socket, and one that somebody keeps, is shared.
  [[nodiscard]] Result<ListeningSocket> Another() const;

  ListeningSocket(ListeningSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        owns_path_(std::exchange(other.owns_path_, false)),
        is_kept_(other.is_kept_),
        endpoint_(std::move(other.endpoint_)) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  const Endpoint& endpoint() const noexcept { return endpoint_; }
  bool is_loopback() const noexcept;
  // Whether it is bound to that address: to one of them, if a name has several.
  bool IsAt(const Endpoint& endpoint) const;
  // Somebody else keeps it open.
  bool is_kept() const noexcept { return is_kept_; }
  int fd() const noexcept { return fd_; }

  // Whoever comes from now on finds nobody, as if the first packet had been lost; once this is
  // closed the next try is refused. Without it, who gets in between the last accept and the close
  // would be cut off, request and all. Not for one that is kept: who comes then waits there.
  void IgnoreNewcomers() const noexcept;

 private:
  static Result<ListeningSocket> OpenUnix(const Endpoint& endpoint);
  enum class Sharing : bool { kNo, kYes };
  static Result<ListeningSocket> OpenTcp(const Endpoint& endpoint, Sharing sharing);
  ListeningSocket(int fd, Endpoint endpoint) noexcept : fd_(fd), endpoint_(std::move(endpoint)) {}

  int fd_;
  bool owns_path_ = false;
  bool is_kept_ = false;
  Endpoint endpoint_;
};

}  // namespace weir
