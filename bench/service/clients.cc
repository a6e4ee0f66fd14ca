#include "clients.h"

#include <cstdio>
#include <string>

#include <weir/clock.h>

#include "harness/require.h"
#include "processor_time.h"

namespace weir::bench {

SteadyTime Clock() noexcept { return SystemClock::Shared().Read().steady; }

Clients::Clients(const LoadOptions& options, RequestSequence& requests)
    : shape_(Learn(options, requests)), replies_(options.connections) {
  sockets_.reserve(options.connections);
  for (std::uint32_t i = 0; i < options.connections; ++i) {
    readiness_.Watch(sockets_.emplace_back(options.port), i);
  }
}

ReplyShape Clients::Learn(const LoadOptions& options, RequestSequence& requests) {
  const Socket socket(options.port);
  socket.Send(requests.Next(1));
  std::string reply;
  std::array<char, 4096> buffer;
  for (;;) {
    reply += socket.Await(buffer);
    const std::optional<std::size_t> bytes =
        IsHttp(options.kind) ? HttpReplyBytes(reply) : RespReplyBytes(reply);
    if (!bytes) continue;
    Require(*bytes == reply.size(), "one request has one reply");
    return {options.kind, reply};
  }
}

LoadMeasurement::LoadMeasurement(const LoadOptions& options)
    : server_(options.server), begin_(Clock() + options.warm_up), end_(begin_ + options.length) {}

bool LoadMeasurement::HasBegun(SteadyTime now) {
  if (begun_ || now < begin_) return begun_;
  begun_ = true;
  processor_time_ = ProcessorTime(server_);
  begin_ = Clock();
  return true;
}

void LoadMeasurement::PrintFields() const {
  Require(begun_ && requests_ > 0, "something was measured");
  const auto processor = static_cast<double>((ProcessorTime(server_) - processor_time_).count());
  const auto time = static_cast<double>((Clock() - begin_).count());
  std::printf(R"("requests": %llu, "seconds": %.4f, "cpu_ns": %.2f, "busy": %.4f)",
              static_cast<unsigned long long>(requests_), time * 1e-9,
              processor / static_cast<double>(requests_), processor / time);
}

}  // namespace weir::bench
