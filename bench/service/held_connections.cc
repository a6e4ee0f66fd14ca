#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "clients.h"
#include "harness/require.h"
#include "load.h"
#include "sockets.h"

namespace weir::bench {
namespace {

// The beginnings of requests that are never complete: what follows is all of an argument or header.
constexpr std::string_view kRespBeginning = "*2\r\n$4\r\nPING\r\n$60000\r\n";
constexpr std::string_view kHttpBeginning = "POST /v1/check HTTP/1.1\r\nHost: a\r\nX-Slow: ";

// Sends to one connection after the other, a round in a second.
class SlowSenders {
 public:
  explicit SlowSenders(const std::vector<Socket>& sockets) : sockets_(sockets), begin_(Clock()) {}

  void SendWhatIsDue() {
    const std::chrono::duration<double> passed = Clock() - begin_;
    const auto due =
        static_cast<std::size_t>(passed.count() * static_cast<double>(sockets_.size()));
    for (; sent_ < due; ++sent_) {
      const std::size_t at = sent_ % sockets_.size();
      const std::size_t round = sent_ / sockets_.size();
      const std::string_view beginning = at % 2 == 0 ? kRespBeginning : kHttpBeginning;
      sockets_[at].Send(round < beginning.size() ? beginning.substr(round, 1) : "x");
    }
  }

 private:
  const std::vector<Socket>& sockets_;
  const SteadyTime begin_;
  std::size_t sent_ = 0;
};

}  // namespace

void HoldConnections(const HeldOptions& options) {
  // As many as one address may have unless a policy says otherwise, and room to spare.
  constexpr std::size_t kPerAddress = 900;
  constexpr int kFirstAddress = 2;
  std::vector<Socket> sockets;
  sockets.reserve(options.connections);
  for (std::size_t i = 0; i < options.connections; ++i) {
    sockets.emplace_back(i % 2 == 0 ? options.resp_port : options.http_port,
                         kFirstAddress + static_cast<int>(i / kPerAddress));
  }
  std::printf("ready\n");
  std::fflush(stdout);

  SlowSenders slow(sockets);
  const bool sends = options.traffic == HeldTraffic::kByteASecond;
  // Few and large steps: this process shares its processor with the load generator.
  constexpr int kStepMs = 10;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, sends ? kStepMs : -1) == 0) slow.SendWhatIsDue();
  std::printf("{\"open\": %td}\n", std::ranges::count_if(sockets, &Socket::IsOpen));
}

}  // namespace weir::bench
