// The gRPC side of a connection: what makes calls of HTTP/2 streams, and streams of answers. What
// is asked, and of whom, is for GrpcServices.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/grpc/grpc_call.h"
#include "frontend/grpc/grpc_status.h"
#include "frontend/protocol.h"
#include "net/h2/session.h"

namespace weir {

// Told of calls.
class GrpcServices {
 public:
  // A message of a call that may have several; it is good until this returns.
  virtual void OnMessage(GrpcCall& call, std::string_view message) noexcept = 0;
  // The call has ended, and something of it was still under way.
  virtual void OnAbandoned(GrpcCall& call) noexcept = 0;

 protected:
  ~GrpcServices() = default;
};

class GrpcServer final : private H2Handler {
 public:
  GrpcServer(Exchange& exchange, GrpcServices& services);
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;
  ~GrpcServer();

  // Calls whose one message is complete are in ready() then.
  void Feed(std::string_view bytes);
  std::vector<GrpcCall*>& ready() noexcept { return ready_; }
  // Hands what there is to send to the replies.
  void Flush();
  // None if the call has ended.
  GrpcCall* Find(std::uint64_t id) noexcept;

  // The message of a call that has one.
  static std::string_view MessageOf(const GrpcCall& call) noexcept;

  // --- Answers. ---

  // A message was appended to call.out; there may be more, unless this is the last.
  enum class More : bool { kNo, kYes };
  void Send(GrpcCall& call, More more);
  // Ends a call that has told nothing, or something already.
  void End(GrpcCall& call, const GrpcStatus& status);
  // One of ready() stays there for now; or is taken from there, to be answered.
  void PutOff(GrpcCall& call);
  void TakeUp(GrpcCall& call);
  // The answer comes later.
  void Await(GrpcCall& call);
  void Awaited(GrpcCall& call);

  // Ends calls that take too long, and says when the service is about to end.
  void Sweep(SteadyTime now);
  // Calls `sink` with every call, which it may end.
  template <typename Sink>  // void(GrpcCall&)
  void ForEachCall(Sink&& sink) {
    for (const auto& call : open_) sink(*call);
  }
  void SayGoodbye();
  // Whether a call is not complete, or its answer has not left.
  bool has_calls() const noexcept { return !open_.empty(); }
  std::size_t held_bytes() const noexcept;

 private:
  H2Stream* OnRequest(std::int32_t id) noexcept override;
  bool OnHeader(H2Stream& stream, std::string_view name, std::string_view value) noexcept override;
  void OnHead(H2Stream& stream) noexcept override;
  void OnData(H2Stream& stream, std::string_view bytes) noexcept override;
  void OnEnd(H2Stream& stream) noexcept override;
  void OnClosed(H2Stream& stream) noexcept override;
  void OnRefused() noexcept override;
  bool IsFull() const noexcept override;

  static GrpcCall& CallOf(H2Stream& stream) noexcept { return static_cast<GrpcCall&>(stream); }
  bool MayDo(GrpcCall& call);
  bool RefuseMessage(GrpcCall& call);
  void TakeMessages(GrpcCall& call);
  void AnswerPlainly(GrpcCall& call, std::string_view status, std::string_view text);
  void SweepCall(GrpcCall& call, SteadyTime now);
  void Count(GrpcCode code) noexcept;
  void Remove(GrpcCall& call) noexcept;
  void RefuseOtherProtocol();
  void ForgetReady();
  void DropPending();

  Exchange& exchange_;
  Door& door_;
  Replies& replies_;
  GrpcServices& services_;
  std::vector<std::unique_ptr<GrpcCall>> open_;
  std::vector<GrpcCall*> ready_;
  std::size_t in_bytes_ = 0;   // Of requests that are not answered.
  std::size_t out_bytes_ = 0;  // Of answers that may not have left.
  int farewell_ = 0;           // How far the end of the service has been told.
  H2Session session_;
};

}  // namespace weir
