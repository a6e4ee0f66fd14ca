#include "script_store.h"

#include <charconv>
#include <vector>

#include "net/resp/reply_reader.h"
#include "script_engine.h"

namespace weir::conformance {
namespace {

// A command as it was written: "*2\r\n$4\r\n...".
std::vector<std::string_view> WordsOf(std::string_view bytes) {
  std::vector<std::string_view> words;
  const auto number = [&] {
    std::size_t value = 0;
    const auto read = std::from_chars(bytes.data() + 1, bytes.data() + bytes.size(), value);
    bytes.remove_prefix(static_cast<std::size_t>(read.ptr - bytes.data()) + 2);
    return value;
  };
  const std::size_t count = number();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = number();
    words.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size + 2);
  }
  return words;
}

// Somebody else who asks at the same time.
struct Bystander {
  const Limit limit = *Limit::Parse("10/s")->ForSharedStore();
  const Charge charge{.rule = "bystander", .key = "bystander", .limit = &limit};
  Decision decision{};
  Group group{.charges = {&charge, 1}, .decisions = {&decision, 1}};
};

}  // namespace

ScriptStore::ScriptStore(Expiry expiry, Company company)
    : expiry_(expiry), company_(company), redis_(ScriptEngine()) {}

void ScriptStore::Submit(std::span<Group> groups, Now now, Completion& completion) noexcept {
  redis_.SetTime(std::chrono::floor<std::chrono::microseconds>(now.wall.time_since_epoch()));
  std::size_t next = 0;
  Bystander bystander;
  while (next < groups.size()) {
    call_.Clear();
    was_alone_ = company_ == Company::kNever || !was_alone_;
    if (!was_alone_) call_.Add(bystander.group, now.wall);
    while (next < groups.size() && call_.Add(groups[next], now.wall)) ++next;
    Run(call_);
    call_.ForEachGroup([&](Group& group) {
      if (&group != &bystander.group) completion.OnDecided(group);
    });
  }
}

void ScriptStore::Run(redis::ScriptCall& call) {
  const std::size_t corrupt_before = corrupt_;
  do {
    ByteBuffer out;
    const bool known = redis_.KnowsScript(redis::ScriptDigest());
    call.Write(out, known ? redis::ScriptCall::Form::kDigest : redis::ScriptCall::Form::kText);
    const sim::Reply reply = redis_.Execute(WordsOf(out.view()));
    if (reply.IsError()) {
      problem_ = reply.text;
      call.Fail({.code = ErrorCode::kInternal, .message = reply.text});
      return;
    }
    ByteBuffer in;
    sim::Write(reply, in);
    resp::ReplyReader reader;
    bool ended = false;
    for (std::string_view rest = in.view(); !ended;) {
      const resp::ReplyReading reading = reader.Read(rest);
      if (reading.kind != resp::ReplyReading::Kind::kItem || !call.Take(reading.item)) {
        problem_ = "not understood: " + ToText(reply);
        call.Fail({.code = ErrorCode::kInternal, .message = problem_});
        return;
      }
      rest.remove_prefix(reading.used);
      ended = reading.item.ends_reply;
    }
  } while (call.WantsAnotherRound());
  corrupt_ = corrupt_before + call.corrupt();
  Look();
}

void ScriptStore::Look() {
  for (const std::string& key : redis_.keyspace().Keys()) {
    const auto expires_at = redis_.keyspace().ExpiresAt(key);
    if (expiry_ == Expiry::kAsTold) {
      if (!expires_at) problem_ = "no expiry: " + key;
      continue;
    }
    if (!expires_at) continue;
    const auto* text = std::get_if<std::string>(redis_.keyspace().Look(key));
    if (text != nullptr) redis_.Execute({"SET", key, std::string(*text)});
  }
}

}  // namespace weir::conformance
