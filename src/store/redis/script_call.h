// One call of our script: what it is sent, and what its answer means. Groups that live on the same
// server may share a call; in a cluster, only those of the same slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/byte_buffer.h"
#include "net/resp/reply_reader.h"
#include "store/store.h"

namespace weir::redis {

// The text of the script, as it is shipped, and its SHA-1 in hex.
std::string_view ScriptText() noexcept;
std::string_view ScriptDigest() noexcept;

// Used for one call after the other. Not thread-safe.
class ScriptCall {
 public:
  // Beyond this a call would keep the server from others for too long.
  static constexpr std::size_t kMostKeys = 128;

  // Empty again.
  void Clear() noexcept;
  // The group stays where it is until the call is over. All of its keys have the same slot, or all
  // groups of the call are on a server that does not care. False if there is no room for it; there
  // always is in an empty call.
  bool Add(Group& group) noexcept;
  bool empty() const noexcept;
  std::size_t groups() const noexcept;
  // Of the first key: where a cluster has to send it.
  std::uint16_t slot() const noexcept;

  // As a command: by its digest, or with the whole text for a server that does not know it yet.
  enum class Form : std::uint8_t { kDigest, kText };
  void Write(ByteBuffer& out, Form form) const;

  // The items of the answer, one after the other, unless it is an error. False if it makes no
  // sense; then no group is decided. After the last item all groups are.
  bool Take(const resp::ReplyItem& item) noexcept;
  // How many values were not ours, and were replaced.
  std::size_t corrupt() const noexcept;

  // Puts the error into every group. Nothing is decided.
  void Fail(const Error& error) noexcept;
  // `sink` is void(Group&).
  template <typename Sink>
  void ForEachGroup(Sink&& sink);
};

}  // namespace weir::redis
