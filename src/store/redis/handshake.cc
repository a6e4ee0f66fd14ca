#include "store/redis/handshake.h"

#include "net/resp/writer.h"
#include "store/redis/error_reply.h"

namespace weir::redis {

void Handshake::Write(ByteBuffer& out) {
  const auto add = [&](Step step, std::initializer_list<std::string_view> words) {
    order_[steps_++] = step;
    resp::WriteCommand(out, {words.begin(), words.size()});
  };
  const Credentials& credentials = site_.credentials;
  if (!credentials.password.empty() && !credentials.user.empty()) {
    add(Step::kAuth, {"AUTH", credentials.user, credentials.password});
  } else if (!credentials.password.empty()) {
    add(Step::kAuth, {"AUTH", credentials.password});
  }
  if (is_sentinel_) return add(Step::kPing, {"PING"});
  if (site_.database != 0) add(Step::kSelect, {"SELECT", std::to_string(site_.database)});
  add(Step::kName, {"CLIENT", "SETNAME", "weir"});
  add(Step::kInfo, {"INFO"});
}

bool Handshake::Take(const resp::ReplyItem& item) {
  using Kind = resp::ReplyItem::Kind;
  if (!item.ends_reply || item.depth != 0 || is_done()) return false;
  const Step step = order_[taken_++];
  if (item.kind == Kind::kError) {
    OnError(step, item.text);
  } else if (step == Step::kInfo) {
    if (item.kind != Kind::kBulk) return false;
    info_ = item.text;
  } else if (item.kind != Kind::kSimple) {
    return false;
  }
  return true;
}

void Handshake::OnError(Step step, std::string_view text) {
  if (refusal_) return;
  const StoreFault fault = ReadErrorReply(text).fault;
  const bool let_in = step != Step::kAuth && fault != StoreFault::kCredentials;
  const bool no_right = text.starts_with("NOPERM");
  // A name and what INFO says are good to have, and no more than that.
  const bool no_matter = step == Step::kName || step == Step::kInfo || step == Step::kPing;
  if (no_matter && (let_in || no_right) && !text.starts_with("DENIED") &&
      !text.starts_with("ERR max number of clients"))
    return;
  refusal_ = {.fault = step == Step::kAuth ? StoreFault::kCredentials : fault,
              .text = std::string(Readable(text))};
}

}  // namespace weir::redis
