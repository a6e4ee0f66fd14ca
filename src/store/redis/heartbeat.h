// Says that a process is there, and counts those that do: a sorted set of members by when they were
// last heard of, by the server's clock, in milliseconds.
//
//   weir1:{~fleet}:members
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <weir/result.h>

#include "store/redis/call.h"

namespace weir::redis {

class Heartbeat final : public Call {
 public:
  static constexpr std::string_view kTag = "~fleet";

  // Who is meant by a server that says that the key is elsewhere; null if nobody is.
  using Follow = std::function<Node*(const ErrorReply&, Node& asked)>;

  // `counted` is called once.
  Heartbeat(std::string_view member, Follow follow, std::function<void(Result<int>)> counted)
      : member_(member), follow_(std::move(follow)), counted_(std::move(counted)) {}
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat() override;

  void Write(ByteBuffer& out) override;
  bool Take(const resp::ReplyItem& item) noexcept override;
  void Ended(std::unique_ptr<Call> self, Node& node, CallEnd end) noexcept override;
  std::uint64_t weight() const noexcept override { return 0; }

 private:
  void Tell(Result<int> result);

  static constexpr int kMostRounds = 3;

  const std::string member_;
  const Follow follow_;
  std::function<void(Result<int>)> counted_;
  std::int64_t count_ = 0;
};

}  // namespace weir::redis
