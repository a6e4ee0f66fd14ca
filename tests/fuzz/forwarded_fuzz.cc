// Whatever stands in a forwarding header, finding the client must end well and must not be led
// astray: one who is not trusted is the client itself, whoever is found stands in the header, and
// what an attacker writes to the left of it changes nothing.
//
// The first byte picks who connects (two bits), which header counts, and how many hops (three bits,
// 0: proxies are named). The rest is what the attacker writes, a byte 1, and the lines of the
// header. Without a byte 1 all of it is the lines.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/request.h>

#include "policy/address.h"
#include "policy/client_address.h"

namespace {

using weir::ClientAddressFinder;
using weir::ForwardingHeader;
using weir::IpAddress;
using weir::IpRange;
using weir::IpRangeSet;

using Lines = std::vector<std::string>;

[[noreturn]] void Fail(const char* what, const Lines& lines) {
  std::fprintf(stderr, "%s:\n", what);
  for (const std::string& line : lines) std::fprintf(stderr, "  %s\n", line.c_str());
  std::abort();
}

Lines Split(std::string_view text, char separator) {
  Lines pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

const IpRangeSet& Trusted() {
  static const IpRangeSet set({*IpRange::Parse("10.0.0.0/8"), *IpRange::Parse("::1"),
                               *IpRange::Parse("2001:db8:1::/48"), *IpRange::Parse("127.0.0.1")});
  return set;
}

struct Scene {
  std::optional<IpAddress> peer;
  weir::ClientIpSpec spec;

  explicit Scene(unsigned byte) {
    constexpr std::array<const char*, 4> kPeers = {"10.0.0.1", "203.0.113.9", "::ffff:10.0.0.1",
                                                   ""};  // The last is a unix socket.
    peer = IpAddress::Parse(kPeers[byte & 3]);
    if ((byte & 4) != 0) spec.header = ForwardingHeader::kForwarded;
    spec.hops = static_cast<int>(byte >> 3 & 7);
  }

  ClientAddressFinder::Found Find(const Lines& lines) const {
    const bool rfc = spec.header == ForwardingHeader::kForwarded;
    std::vector<weir::NamedValue> headers = {{rfc ? "x-forwarded-for" : "forwarded", "6.6.6.6"}};
    for (const std::string& line : lines) {
      headers.push_back({rfc ? "Forwarded" : "X-Forwarded-For", line});
    }
    return ClientAddressFinder(spec.hops > 0 ? IpRangeSet() : Trusted(), spec).Find(peer, headers);
  }
};

// Whether the address stands in a line, read in the simplest way: between commas, or behind any
// `for=`, quotes and escapes dropped.
bool StandsIn(const std::string& line, const IpAddress& address, ForwardingHeader header) {
  if (header == ForwardingHeader::kXForwardedFor) {
    return std::ranges::any_of(Split(line, ','), [&](const std::string& element) {
      return IpAddress::ParseForwarded(element) == address;
    });
  }
  std::string plain = line;
  std::ranges::transform(plain, plain.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (std::size_t at = plain.find("for="); at != std::string::npos;
       at = plain.find("for=", at + 1)) {
    std::string node = plain.substr(at + 4, plain.find_first_of(",;", at) - at - 4);
    std::erase_if(node, [](char c) { return c == '"' || c == '\\'; });
    if (IpAddress::ParseForwarded(node) == address) return true;
  }
  return false;
}

void CheckFound(const Scene& scene, const Lines& lines, const ClientAddressFinder::Found& found) {
  const bool trusted = scene.spec.hops > 0 || !scene.peer || Trusted().Contains(*scene.peer);
  if (found.peer_trusted != trusted) Fail("wrong about the peer", lines);
  if (found.ignored_forwarding) Fail("ignored, though somebody is trusted", lines);
  if (found.client == scene.peer) return;
  if (!trusted) Fail("one who is not trusted is not the client", lines);
  if (!found.client) Fail("the peer was lost", lines);
  const bool stands = std::ranges::any_of(lines, [&](const std::string& line) {
    return StandsIn(line, *found.client, scene.spec.header);
  });
  if (!stands) Fail("the client stands nowhere", lines);
}

// Whether what stands further left can have no say: the walk ended before, at the client.
bool IsSettled(const Scene& scene, const Lines& lines, const ClientAddressFinder::Found& found) {
  if (!found.peer_trusted) return true;
  if (scene.spec.hops == 0) return found.client && !Trusted().Contains(*found.client);
  // In Forwarded a comma may stand in quotes; lines are elements anyway.
  std::size_t elements = lines.size();
  if (scene.spec.header == ForwardingHeader::kXForwardedFor) {
    for (const std::string& line : lines) {
      elements += static_cast<std::size_t>(std::ranges::count(line, ','));
    }
  }
  return elements >= static_cast<std::size_t>(scene.spec.hops);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Scene scene(data[0]);
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string_view attack;
  if (const std::size_t mark = text.find('\1'); mark != std::string_view::npos) {
    attack = text.substr(0, mark);
    text.remove_prefix(mark + 1);
  }
  Lines lines = Split(text, '\n');
  const ClientAddressFinder::Found found = scene.Find(lines);
  CheckFound(scene, lines, found);
  if (!IsSettled(scene, lines, found)) return 0;

  // In a line of its own, and in the first one. There a quote in Forwarded may swallow what the
  // proxy wrote, so that nothing is found; without one it changes nothing either.
  lines.insert(lines.begin(), std::string(attack));
  if (scene.Find(lines).client != found.client) Fail("changed by a line before it", lines);
  lines.erase(lines.begin());
  if (scene.spec.header == ForwardingHeader::kForwarded &&
      attack.find('"') != std::string_view::npos) {
    return 0;
  }
  lines.front().insert(0, std::string(attack) + ",");
  if (scene.Find(lines).client != found.client) Fail("changed by what stands before it", lines);
  return 0;
}
