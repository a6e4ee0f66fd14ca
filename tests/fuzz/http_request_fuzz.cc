// Whatever comes in as HTTP, reading it must end well, must not depend on how the bytes are cut,
// and must end each request where two other parsers end it.
//
// The first byte says how the bytes are cut: into pieces of so many, growing by one each time. The
// rest is what the client sends.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/request_reader.h"
#include "net/http/second_parser.h"

namespace {

using weir::FramedRequest;
using weir::HttpHead;
using weir::HttpRequestReader;
using Outcome = HttpRequestReader::Outcome;

constexpr HttpRequestReader::Bounds kBounds = {.header = 512, .body = 1024};

struct Requests {
  std::vector<FramedRequest> all{};
  Outcome end = Outcome::kIncomplete;
  std::string fault{};
};

[[noreturn]] void Fail(const char* what, const std::string& why = "") {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  std::abort();
}

void CheckViews(const HttpHead& head, std::string_view bytes) {
  const std::string_view viewed = head.is_of_memo ? head.memo.text() : bytes;
  const auto is_within = [&](std::string_view text) {
    return text.data() >= viewed.data() &&
           text.data() + text.size() <= viewed.data() + viewed.size();
  };
  if (!is_within(head.method) || !is_within(head.target)) Fail("a view of other bytes");
  for (const weir::NamedValue& field : head.headers()) {
    if (!is_within(field.name) || !is_within(field.value)) Fail("a view of other bytes");
    if (field.name.empty()) Fail("a header without a name");
  }
}

// Takes what is complete from the beginning of `buffer`. False if there can be no more.
bool Take(HttpRequestReader& reader, HttpHead& head, std::string& buffer, Requests& requests) {
  for (;;) {
    if (buffer.empty()) return true;
    requests.end = reader.Read(buffer, kBounds, head);
    if (requests.end == Outcome::kIncomplete) return true;
    if (requests.end == Outcome::kFault) {
      requests.fault = reader.fault().message;
      if (requests.fault.empty() || reader.fault().status < 400) Fail("refused without a reason");
      return false;
    }
    CheckViews(head, buffer);
    if (reader.body().size() > kBounds.body || reader.size() > buffer.size()) Fail("too large");
    requests.all.push_back({.method = std::string(head.method),
                            .target = std::string(head.target),
                            .body = std::string(reader.body().begin(), reader.body().end()),
                            .size = reader.size()});
    buffer.erase(0, reader.size());
  }
}

// `head` may hold what another connection has left there.
Requests ReadInPieces(std::string_view bytes, std::size_t piece, HttpHead& head) {
  HttpRequestReader reader;
  Requests requests;
  std::string buffer;
  while (!bytes.empty()) {
    const std::string_view next = bytes.substr(0, piece++);
    bytes.remove_prefix(next.size());
    // In other memory each time, and no larger than it is.
    std::string moved;
    moved.reserve(buffer.size() + next.size());
    moved.append(buffer).append(next);
    buffer = std::move(moved);
    if (!Take(reader, head, buffer, requests)) break;
  }
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  HttpHead head;
  const Requests whole = ReadInPieces(bytes, bytes.size() + 1, head);
  const Requests pieces = ReadInPieces(bytes, data[0] % 64 + 1U, head);
  if (whole.all != pieces.all) Fail("other requests when cut into pieces");
  // A head that is not whole yet may be found to be wrong a little later in pieces.
  const bool later = whole.end == Outcome::kFault && pieces.end == Outcome::kIncomplete;
  if (!later && (whole.end != pieces.end || whole.fault != pieces.fault)) {
    Fail("another end when cut into pieces", whole.fault + " / " + pieces.fault);
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i <= whole.all.size() && at < bytes.size(); ++i) {
    const std::string why = weir::FindDisagreement(std::string(bytes.substr(at)), kBounds);
    if (!why.empty()) Fail("the parsers disagree", why);
    if (i < whole.all.size()) at += whole.all[i].size;
  }
  return 0;
}
