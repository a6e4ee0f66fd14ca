// Sockets that whoever started this process opened for it: systemd's socket activation. They are
// descriptors from 3 on, LISTEN_FDS of them, named in LISTEN_FDNAMES (a:b:c), for the process
// LISTEN_PID. While this process is replaced by another they stay open, so that nobody who connects
// finds the door shut.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/result.h>

#include "net/listening_socket.h"

namespace weir {

class PassedSockets {
 public:
  // What the environment says, which says it no more then. None if it speaks to another process.
  // An error if one of them is nothing to listen on.
  [[nodiscard]] static Result<PassedSockets> FromEnvironment();

  PassedSockets() = default;

  // That of a listener, which has it from then on: the one with the name of its protocol, else the
  // one at its address.
  std::optional<ListeningSocket> Take(std::string_view protocol, const Endpoint& endpoint);

  // Names and addresses of those that nobody has taken: "resp 127.0.0.1:6380".
  std::vector<std::string> left() const;

 private:
  struct Named {
    std::string name;
    ListeningSocket socket;
  };
  // From the first descriptor on, by their names.
  Result<void> Adopt(const std::vector<std::string>& names);

  std::vector<std::optional<Named>> sockets_;  // None: taken.
};

}  // namespace weir
