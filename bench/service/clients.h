// What closed and open load have in common: connections that are ready, replies that are known, and
// a measurement with a beginning and an end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weir/time.h>

#include "load.h"
#include "replies.h"
#include "requests.h"
#include "sockets.h"

namespace weir::bench {

SteadyTime Clock() noexcept;

class Clients {
 public:
  // Connects all of them, and asks for one reply to learn what replies look like.
  Clients(const LoadOptions& options, RequestSequence& requests);

  std::size_t size() const noexcept { return sockets_.size(); }
  void Send(std::size_t client, std::string_view requests) const {
    sockets_[client].Send(requests);
  }
  // Calls `on_replies(client, how many)` for those that have got some.
  template <typename OnReplies>
  void Poll(OnReplies&& on_replies) {
    for (const epoll_event& event : readiness_.Poll()) {
      const std::size_t client = event.data.u32;
      const std::string_view bytes = sockets_[client].Receive(buffer_);
      if (bytes.empty()) continue;
      if (const std::size_t complete = replies_[client].Add(shape_, bytes); complete > 0) {
        on_replies(client, complete);
      }
    }
  }

 private:
  static ReplyShape Learn(const LoadOptions& options, RequestSequence& requests);

  ReplyShape shape_;
  std::vector<Socket> sockets_;
  std::vector<ReplyCounter> replies_;
  Readiness readiness_;
  std::array<char, 1 << 18> buffer_;
};

// The part of a run that counts.
class LoadMeasurement {
 public:
  explicit LoadMeasurement(const LoadOptions& options);

  bool IsOver(SteadyTime now) const noexcept { return now >= end_; }
  // What is counted from now on. To be called until it is true, and then once at the end.
  bool HasBegun(SteadyTime now);
  void Count(std::size_t requests) noexcept { requests_ += requests; }

  // "requests": ..., "seconds": ..., "cpu_ns": ..., "busy": ...
  void PrintFields() const;

 private:
  const pid_t server_;
  SteadyTime begin_;
  SteadyTime end_;
  bool begun_ = false;
  Duration processor_time_{0};
  std::uint64_t requests_ = 0;
};

}  // namespace weir::bench
