// What a connection is, apart from decisions: which version of the protocol it speaks, what it may
// do, and what ordinary Redis clients ask when they connect.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "frontend/access.h"
#include "frontend/protocol.h"
#include "frontend/resp/command_table.h"
#include "frontend/resp/reply.h"
#include "net/resp/writer.h"

namespace weir::resp {

class Session {
 public:
  using Words = std::span<const std::string_view>;

  explicit Session(Exchange& exchange);

  Version version() const noexcept { return version_; }
  Right right() const noexcept { return right_; }

  // Any command that asks for no decision. `words` are as many as its row says.
  void Run(const CommandRow& row, Words words, Reply& reply);

 private:
  void Hello(Words words, Reply& reply);
  void Auth(Words words, Reply& reply);
  void Client(Words words, Reply& reply);
  void SetInfo(Words words, Reply& reply);
  void Reset();
  // False if the token is wrong, which has been said then.
  bool Present(std::string_view user, std::string_view token, Reply& reply);
  // False if no client may have that name, which has been said then.
  bool CheckName(std::string_view name, Reply& reply);
  std::string Line() const;
  std::string Info() const;

  Exchange& exchange_;
  const std::uint64_t id_;
  Version version_ = Version::kResp2;
  Right right_;
  std::string name_;
  std::string library_name_;
  std::string library_version_;
};

}  // namespace weir::resp
