#include "policy/client_address.h"

#include <array>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "policy/forwarding_list.h"

namespace weir {
namespace {

using namespace std::string_view_literals;

constexpr ForwardingHeader kXff = ForwardingHeader::kXForwardedFor;
constexpr ForwardingHeader kRfc = ForwardingHeader::kForwarded;

constexpr std::string_view kTen = "10.0.0.0/8";

// Who connects, and whom the policy trusts.
struct Scene {
  std::string_view peer = "10.0.0.1";  // "unix" has no address.
  std::string_view trusted = kTen;     // Ranges with blanks between them.
  int hops = 0;
  ForwardingHeader header = kXff;
};
constexpr Scene kProxy = {};
constexpr Scene kProxyRfc = {.header = kRfc};
constexpr Scene kStranger = {.peer = "203.0.113.9"};
constexpr Scene kStrangerRfc = {.peer = "203.0.113.9", .header = kRfc};

// What somebody tried, or what a proxy may write, and who must be found. The client is 203.0.113.9
// if nothing else is said, and wants to be taken for 6.6.6.6.
struct ForwardedRow {
  std::string_view name;
  Scene scene;
  std::vector<NamedValue> headers;
  std::string_view client;  // "none" if it cannot be known.
  bool peer_trusted = true;
};

template <typename... Values>
std::vector<NamedValue> Xff(const Values&... values) {
  return {{"X-Forwarded-For", values}...};
}

template <typename... Values>
std::vector<NamedValue> Rfc(const Values&... values) {
  return {{"Forwarded", values}...};
}

std::string Many(std::size_t count, std::string_view element) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) (list += i > 0 ? ", " : "") += element;
  return list;
}

const std::string kLongForged = Many(5000, "6.6.6.6") + ", 203.0.113.9, 10.0.0.2";
const std::string kOnlyTrustedAndTooLong = "203.0.113.9, 10.0.0.3, " + Many(63, "10.0.0.2");
const std::string kJustNotTooLong = "203.0.113.9, " + Many(63, "10.0.0.2");
const std::string kOverlong = "203.0.113.9, " + std::string(100'000, '1');
const std::string kOverlongZone = "6.6.6.6, fe80::1%" + std::string(100'000, 'z');
const std::string kLongQuoted =
    Many(5000, "for=\"6.6.6.6\"") + ",for=203.0.113.9, for=\"10.0.0.2\"";

const std::vector<ForwardedRow>& XForwardedForRows() {
  static const std::vector<ForwardedRow> rows = {
      // Who is believed at all.
      {"no header", kStranger, {}, "203.0.113.9", false},
      {"no header from a proxy", kProxy, {}, "10.0.0.1"},
      {"nobody is trusted", {.trusted = ""}, Xff("6.6.6.6"), "10.0.0.1", false},
      {"forged by an untrusted peer", kStranger, Xff("6.6.6.6"), "203.0.113.9", false},
      {"forged with our own proxy's address", kStranger, Xff("6.6.6.6, 10.0.0.1"), "203.0.113.9",
       false},
      {"a neighbour of the trusted range", {.peer = "11.0.0.0"}, Xff("6.6.6.6"), "11.0.0.0", false},
      {"IPv6 peer and a range that ends in the same bytes",
       {.peer = "::a00:1"},
       Xff("6.6.6.6"),
       "::a00:1",
       false},

      // From the right, and no further than the first that is not trusted.
      {"one proxy", kProxy, Xff("203.0.113.9"), "203.0.113.9"},
      {"forged leftmost", kProxy, Xff("6.6.6.6, 203.0.113.9"), "203.0.113.9"},
      {"forged leftmost, two proxies", kProxy, Xff("6.6.6.6,203.0.113.9,10.0.0.2"), "203.0.113.9"},
      {"trusted in the middle of untrusted", kProxy,
       Xff("6.6.6.6, 10.0.0.3, 203.0.113.9, 10.0.0.2"), "203.0.113.9"},
      {"forged as one of ours", kProxy, Xff("10.9.9.9, 203.0.113.9"), "203.0.113.9"},
      {"all trusted: leftmost", kProxy, Xff("10.0.0.4, 10.0.0.3, 10.0.0.2"), "10.0.0.4"},
      {"several trusted ranges",
       {.trusted = "10.0.0.0/8 192.0.2.7 2001:db8:1::/48"},
       Xff("203.0.113.9, 2001:db8:1::5, 192.0.2.7"),
       "203.0.113.9"},

      // Junk is never skipped.
      {"empty header", kProxy, Xff(""), "10.0.0.1"},
      {"blanks only", kProxy, Xff(" \t "), "10.0.0.1"},
      {"commas only", kProxy, Xff(",,,"), "10.0.0.1"},
      {"trailing comma", kProxy, Xff("6.6.6.6,"), "10.0.0.1"},
      {"leading comma", kProxy, Xff(",203.0.113.9"), "203.0.113.9"},
      {"empty element in the middle", kProxy, Xff("6.6.6.6, , 10.0.0.2"), "10.0.0.2"},
      {"junk in the middle", kProxy, Xff("6.6.6.6, <script>, 10.0.0.2"), "10.0.0.2"},
      {"junk on the left of the client", kProxy, Xff("junk, 203.0.113.9, 10.0.0.2"), "203.0.113.9"},
      {"unknown", kProxy, Xff("6.6.6.6, unknown"), "10.0.0.1"},
      {"made-up name", kProxy, Xff("6.6.6.6, _hidden, 10.0.0.2"), "10.0.0.2"},
      {"host name", kProxy, Xff("6.6.6.6, localhost"), "10.0.0.1"},
      {"blanks in place of a comma", kProxy, Xff("6.6.6.6 203.0.113.9"), "10.0.0.1"},
      {"semicolon in place of a comma", kProxy, Xff("6.6.6.6; 203.0.113.9"), "10.0.0.1"},
      {"in quotes", kProxy, Xff("\"6.6.6.6\""), "10.0.0.1"},
      {"comma in quotes is a comma", kProxy, Xff("\"6.6.6.6, 203.0.113.9"), "203.0.113.9"},
      {"octal", kProxy, Xff("0313.0.113.011"), "10.0.0.1"},
      {"as one number", kProxy, Xff("3405803785"), "10.0.0.1"},
      {"short form", kProxy, Xff("127.1"), "10.0.0.1"},
      {"a range is no address", kProxy, Xff("6.6.6.0/24"), "10.0.0.1"},
      {"NUL behind an address", kProxy, Xff("6.6.6.6\0"sv), "10.0.0.1"},
      {"NUL before the real one", kProxy, Xff("6.6.6.6\0, 203.0.113.9"sv), "203.0.113.9"},
      {"line break in the value", kProxy, Xff("6.6.6.6\r\n, 10.0.0.2"), "10.0.0.2"},
      {"other bytes", kProxy,
       Xff("\xff\xfe, \xc2\xa0"
           "6.6.6.6"),
       "10.0.0.1"},
      {"overlong element", kProxy, Xff(kOverlong), "10.0.0.1"},

      // What proxies write.
      {"port", kProxy, Xff("6.6.6.6:1, 203.0.113.9:56789"), "203.0.113.9"},
      {"port of a proxy", kProxy, Xff("203.0.113.9, 10.0.0.2:443"), "203.0.113.9"},
      {"port that is none", kProxy, Xff("6.6.6.6:99999"), "10.0.0.1"},
      {"IPv6", kProxy, Xff("6.6.6.6, 2001:DB8:0::1"), "2001:db8::1"},
      {"IPv6 in brackets", kProxy, Xff("[2001:db8::1]"), "2001:db8::1"},
      {"IPv6 in brackets with a port", kProxy, Xff("[2001:db8::1]:443"), "2001:db8::1"},
      {"bracket that is not closed", kProxy, Xff("6.6.6.6, [2001:db8::1"), "10.0.0.1"},
      {"IPv4 in brackets", kProxy, Xff("[6.6.6.6]"), "10.0.0.1"},
      {"zone id", kProxy, Xff("fe80::1%eth0"), "fe80::1"},
      {"zone id in brackets", kProxy, Xff("[fe80::1%25eth0]:80"), "fe80::1"},
      {"zone id does not hide a proxy",
       {.peer = "fe80::2", .trusted = "fe80::/64"},
       Xff("203.0.113.9, fe80::1%eth0"),
       "203.0.113.9"},
      {"overlong zone id", kProxy, Xff(kOverlongZone), "fe80::1"},
      {"tabs and blanks", kProxy, Xff("\t 6.6.6.6 ,\t203.0.113.9\t,  10.0.0.2  "), "203.0.113.9"},
      {"no blanks", kProxy, Xff("6.6.6.6,203.0.113.9"), "203.0.113.9"},

      // IPv4 in IPv6.
      {"mapped peer is trusted", {.peer = "::ffff:10.0.0.1"}, Xff("203.0.113.9"), "203.0.113.9"},
      {"mapped peer is the client",
       {.peer = "::ffff:203.0.113.9"},
       Xff("6.6.6.6"),
       "203.0.113.9",
       false},
      {"mapped elements", kProxy, Xff("6.6.6.6, ::ffff:203.0.113.9, [::ffff:a00:2]:80"),
       "203.0.113.9"},
      {"mapped trusted range",
       {.trusted = "::ffff:10.0.0.0/104"},
       Xff("6.6.6.6, 203.0.113.9, ::ffff:10.0.0.2"),
       "203.0.113.9"},
      {"all of IPv6 is no IPv4",
       {.peer = "::ffff:203.0.113.9", .trusted = "::/0"},
       Xff("6.6.6.6"),
       "203.0.113.9",
       false},

      // Several lines, names, the other header.
      {"lines are one list", kProxy, Xff("6.6.6.6", "203.0.113.9"), "203.0.113.9"},
      {"walks on into the line before", kProxy, Xff("6.6.6.6, 203.0.113.9", "10.0.0.3,10.0.0.2"),
       "203.0.113.9"},
      {"other headers between the lines",
       kProxy,
       {{"X-Forwarded-For", "203.0.113.9"},
        {"Host", "6.6.6.6"},
        {"X-Forwarded-For", "10.0.0.2"},
        {"X-Forwarded-For-Original", "6.6.6.6"}},
       "203.0.113.9"},
      {"empty line stops", kProxy, Xff("6.6.6.6", "", "10.0.0.2"), "10.0.0.2"},
      {"junk line on the left", kProxy, Xff("junk", "203.0.113.9"), "203.0.113.9"},
      {"name in any case",
       kProxy,
       {{"x-FORWARDED-for", "6.6.6.6"}, {"x-forwarded-for", "203.0.113.9"}},
       "203.0.113.9"},
      {"a name that is nearly it",
       kProxy,
       {{"X_Forwarded_For", "6.6.6.6"},
        {"X-Forwarded-Fo", "6.6.6.6"},
        {"Forwarded-For", "6.6.6.6"}},
       "10.0.0.1"},
      {"other headers with addresses",
       kProxy,
       {{"X-Real-IP", "6.6.6.6"}, {"True-Client-IP", "6.6.6.6"}, {"Client-IP", "6.6.6.6"}},
       "10.0.0.1"},
      {"Forwarded is not looked at",
       kProxy,
       {{"Forwarded", "for=6.6.6.6"}, {"X-Forwarded-For", "203.0.113.9"}},
       "203.0.113.9"},
      {"no falling back to Forwarded", kProxy, {{"Forwarded", "for=6.6.6.6"}}, "10.0.0.1"},
      {"nor when there is junk",
       kProxy,
       {{"Forwarded", "for=6.6.6.6"}, {"X-Forwarded-For", "junk"}},
       "10.0.0.1"},
      {"syntax of Forwarded", kProxy, Xff("for=6.6.6.6"), "10.0.0.1"},

      // Long lists.
      {"thousands forged", kProxy, Xff(kLongForged), "203.0.113.9"},
      {"as long as is read", kProxy, Xff(kJustNotTooLong), "203.0.113.9"},
      {"longer than is read", kProxy, Xff(kOnlyTrustedAndTooLong), "10.0.0.3"},

      // Unix sockets.
      {"unix socket", {.peer = "unix"}, Xff("6.6.6.6, 203.0.113.9"), "203.0.113.9"},
      {"unix socket, nobody is trusted",
       {.peer = "unix", .trusted = ""},
       Xff("6.6.6.6"),
       "none",
       false},
      {"unix socket without a header", {.peer = "unix"}, {}, "none"},
      {"unix socket and junk", {.peer = "unix"}, Xff("6.6.6.6, junk"), "none"},
      {"unix socket, proxies counted",
       {.peer = "unix", .trusted = "", .hops = 1},
       Xff("6.6.6.6, 203.0.113.9"),
       "203.0.113.9"},
  };
  return rows;
}

const std::vector<ForwardedRow>& HopRows() {
  static const std::vector<ForwardedRow> rows = {
      {"one hop", {.trusted = "", .hops = 1}, Xff("6.6.6.6, 203.0.113.9"), "203.0.113.9"},
      {"two hops",
       {.trusted = "", .hops = 2},
       Xff("6.6.6.6, 203.0.113.9, 10.0.0.2"),
       "203.0.113.9"},
      {"as many elements as hops",
       {.trusted = "", .hops = 2},
       Xff("203.0.113.9, 10.0.0.2"),
       "203.0.113.9"},
      {"fewer elements than hops: the peer",
       {.peer = "203.0.113.9", .trusted = "", .hops = 3},
       Xff("6.6.6.6, 10.0.0.2"),
       "203.0.113.9"},
      {"fewer, with junk among them",
       {.peer = "203.0.113.9", .trusted = "", .hops = 3},
       Xff("junk, 6.6.6.6"),
       "203.0.113.9"},
      {"no header", {.peer = "203.0.113.9", .trusted = "", .hops = 1}, {}, "203.0.113.9"},
      {"hops over several lines",
       {.trusted = "", .hops = 3},
       Xff("6.6.6.6", "203.0.113.9", "10.0.0.3, 10.0.0.2"),
       "203.0.113.9"},
      {"the element is junk",
       {.trusted = "", .hops = 2},
       Xff("6.6.6.6, unknown, 10.0.0.2"),
       "10.0.0.2"},
      {"junk before it is reached", {.trusted = "", .hops = 2}, Xff("6.6.6.6, junk"), "10.0.0.1"},
      {"empty elements are counted", {.trusted = "", .hops = 2}, Xff("6.6.6.6,,"), "10.0.0.1"},
      {"an address in a private range is as good",
       {.trusted = "", .hops = 1},
       Xff("6.6.6.6, 10.0.0.9"),
       "10.0.0.9"},
      {"Forwarded by hops",
       {.trusted = "", .hops = 2, .header = kRfc},
       Rfc("for=6.6.6.6, for=203.0.113.9, for=\"10.0.0.2:80\""),
       "203.0.113.9"},
      {"Forwarded by hops, the other header",
       {.trusted = "", .hops = 1, .header = kRfc},
       {{"X-Forwarded-For", "6.6.6.6"}},
       "10.0.0.1"},
      {"more hops than are read", {.trusted = "", .hops = 65}, Xff(kLongForged), "10.0.0.1"},
      {"as many hops as are read",
       {.trusted = "", .hops = 64},
       Xff(kJustNotTooLong),
       "203.0.113.9"},
  };
  return rows;
}

const std::vector<ForwardedRow>& ForwardedRows() {
  static const std::vector<ForwardedRow> rows = {
      {"one element", kProxyRfc, Rfc("for=203.0.113.9;proto=http;by=10.0.0.1"), "203.0.113.9"},
      {"forged leftmost", kProxyRfc, Rfc("for=6.6.6.6, for=203.0.113.9, for=10.0.0.2"),
       "203.0.113.9"},
      {"forged by an untrusted peer", kStrangerRfc, Rfc("for=6.6.6.6"), "203.0.113.9", false},
      {"names in any case",
       kProxyRfc,
       {{"FORWARDED", "Proto=https;FOR=203.0.113.9"}},
       "203.0.113.9"},
      {"quoted IPv6", kProxyRfc, Rfc("for=6.6.6.6, for=\"[2001:db8:cafe::17]:4711\""),
       "2001:db8:cafe::17"},
      {"quoted mapped IPv4", kProxyRfc, Rfc("for=203.0.113.9, for=\"[::ffff:10.0.0.2]\""),
       "203.0.113.9"},
      {"quoted IPv4 with a port", kProxyRfc, Rfc("for=\"203.0.113.9:80\""), "203.0.113.9"},
      {"port with a made-up name", kProxyRfc, Rfc("for=\"203.0.113.9:_web\""), "203.0.113.9"},
      {"port without quotes", kProxyRfc, Rfc("for=6.6.6.6:80"), "10.0.0.1"},
      {"IPv6 without quotes", kProxyRfc, Rfc("for=6.6.6.6, for=[2001:db8::1]"), "10.0.0.1"},
      {"IPv6 without brackets", kProxyRfc, Rfc("for=6.6.6.6, for=\"2001:db8::1\""), "10.0.0.1"},
      {"mapped IPv4 without brackets", kProxyRfc, Rfc("for=\"::ffff:6.6.6.6\""), "10.0.0.1"},
      {"unknown", kProxyRfc, Rfc("for=6.6.6.6, for=unknown"), "10.0.0.1"},
      {"made-up name", kProxyRfc, Rfc("for=6.6.6.6, for=_mystery"), "10.0.0.1"},
      {"escapes", kProxyRfc, Rfc("for=\"\\[2001:db8\\::1\\]\""), "2001:db8::1"},
      {"escaped quote in another parameter", kProxyRfc,
       Rfc("host=\"a\\\", for=6.6.6.6, \\\"\";for=203.0.113.9"), "203.0.113.9"},
      {"comma in quotes", kProxyRfc, Rfc("for=203.0.113.9;host=\"a, for=6.6.6.6\""), "203.0.113.9"},
      {"semicolon in quotes", kProxyRfc, Rfc("host=\";for=6.6.6.6;\";for=203.0.113.9"),
       "203.0.113.9"},
      {"two addresses in one value", kProxyRfc, Rfc("for=\"6.6.6.6, 203.0.113.9\""), "10.0.0.1"},
      {"for twice", kProxyRfc, Rfc("for=6.6.6.6;for=203.0.113.9"), "10.0.0.1"},
      {"for twice, in another case and far apart", kProxyRfc,
       Rfc("for=203.0.113.9;by=10.0.0.1;For=203.0.113.9"), "10.0.0.1"},
      {"by twice", kProxyRfc, Rfc("by=_a;for=6.6.6.6;by=_b"), "10.0.0.1"},
      {"by only", kProxyRfc, Rfc("for=6.6.6.6, by=203.0.113.9"), "10.0.0.1"},
      {"empty for", kProxyRfc, Rfc("for=6.6.6.6, for="), "10.0.0.1"},
      {"empty quoted for", kProxyRfc, Rfc("for=6.6.6.6, for=\"\""), "10.0.0.1"},
      {"no equals sign", kProxyRfc, Rfc("for=6.6.6.6, for"), "10.0.0.1"},
      {"address without a name", kProxyRfc, Rfc("6.6.6.6"), "10.0.0.1"},
      {"blanks around the equals sign", kProxyRfc, Rfc("for = 6.6.6.6"), "10.0.0.1"},
      {"blanks around semicolons", kProxyRfc, Rfc(" proto=http ;\tfor=203.0.113.9 ; by=_p "),
       "203.0.113.9"},
      {"blanks in quotes", kProxyRfc, Rfc("for=\" 6.6.6.6\""), "10.0.0.1"},
      {"empty parameters", kProxyRfc, Rfc(";;for=203.0.113.9;"), "203.0.113.9"},
      {"text behind a quoted string", kProxyRfc, Rfc("for=\"6.6.6.6\"x"), "10.0.0.1"},
      {"quotes that never end", kProxyRfc, Rfc("for=6.6.6.6, for=\"203.0.113.9, for=10.0.0.2"),
       "10.0.0.1"},
      {"backslash at the end", kProxyRfc, Rfc("for=\"6.6.6.6\\"), "10.0.0.1"},
      {"forged opening quote before what the proxy wrote", kProxyRfc,
       Rfc("for=6.6.6.6;x=\", for=\"[2001:db8::1]\""), "10.0.0.1"},
      {"forged opening quote on a line of its own", kProxyRfc,
       Rfc("for=6.6.6.6;x=\"", "for=203.0.113.9"), "203.0.113.9"},
      {"empty element", kProxyRfc, Rfc("for=6.6.6.6, , for=10.0.0.2"), "10.0.0.2"},
      {"trailing comma", kProxyRfc, Rfc("for=6.6.6.6,"), "10.0.0.1"},
      {"zone id", kProxyRfc, Rfc("for=\"[fe80::1%eth0]\""), "fe80::1"},
      {"NUL in quotes", kProxyRfc, Rfc("host=\"\0\";for=6.6.6.6"sv), "10.0.0.1"},
      {"NUL in a token", kProxyRfc, Rfc("for=6.6.6.6\0"sv), "10.0.0.1"},
      {"escaped NUL", kProxyRfc, Rfc("for=\"6.6.6.6\\\0\""sv), "10.0.0.1"},
      {"several lines",
       kProxyRfc,
       {{"Forwarded", "for=6.6.6.6, for=203.0.113.9"}, {"forwarded", "for=\"10.0.0.2\""}},
       "203.0.113.9"},
      {"X-Forwarded-For is not looked at",
       kProxyRfc,
       {{"Forwarded", "for=203.0.113.9"}, {"X-Forwarded-For", "6.6.6.6"}},
       "203.0.113.9"},
      {"no falling back to X-Forwarded-For",
       kProxyRfc,
       {{"X-Forwarded-For", "6.6.6.6"}, {"Forwarded", "for=unknown"}},
       "10.0.0.1"},
      {"thousands forged, in quotes", kProxyRfc, Rfc(kLongQuoted), "203.0.113.9"},
  };
  return rows;
}

std::optional<IpAddress> PeerOf(const ForwardedRow& row) {
  if (row.scene.peer == "unix") return std::nullopt;
  return IpAddress::Parse(row.scene.peer).value();
}

ClientAddressFinder FinderFor(const ForwardedRow& row) {
  std::vector<IpRange> ranges;
  std::istringstream words{std::string(row.scene.trusted)};
  for (std::string word; words >> word;) ranges.push_back(IpRange::Parse(word).value());
  return {IpRangeSet(ranges), {.header = row.scene.header, .hops = row.scene.hops}};
}

void ExpectEveryRow(const std::vector<ForwardedRow>& rows) {
  for (const ForwardedRow& row : rows) {
    const ClientAddressFinder::Found found = FinderFor(row).Find(PeerOf(row), row.headers);
    EXPECT_EQ(found.client ? found.client->ToString() : "none", row.client) << row.name;
    EXPECT_EQ(found.peer_trusted, row.peer_trusted) << row.name;
  }
}

TEST(ClientAddress, IsNotSpoofedThroughXForwardedFor) {
  EXPECT_GE(XForwardedForRows().size(), 60u);
  ExpectEveryRow(XForwardedForRows());
}

TEST(ClientAddress, IsNotSpoofedThroughForwarded) {
  EXPECT_GE(ForwardedRows().size(), 40u);
  ExpectEveryRow(ForwardedRows());
}

TEST(ClientAddress, IsCountedFromTheRight) {
  EXPECT_GE(HopRows().size(), 12u);
  ExpectEveryRow(HopRows());
}

// What an attacker can do is write whatever they like to the left of it all.
TEST(ClientAddress, DoesNotDependOnWhatStandsFurtherLeft) {
  const auto forged = {
      ""sv,     ","sv,           "6.6.6.6"sv, "junk, 6.6.6.6"sv, "\""sv, "10.0.0.1"sv, "\\"sv,
      "[::1"sv, "for=6.6.6.6"sv, "\0"sv,      "for=\"6.6.6.6"sv};
  int tried = 0;
  for (const auto* rows : {&XForwardedForRows(), &ForwardedRows()}) {
    for (const ForwardedRow& row : *rows) {
      if (!row.peer_trusted || row.client == "none" || row.client.starts_with("10.")) continue;
      for (const std::string_view text : forged) {
        ForwardedRow attacked = row;
        attacked.headers.insert(attacked.headers.begin(), {NameOf(row.scene.header), text});
        ExpectEveryRow({attacked});
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 300);
}

TEST(ClientAddress, TellsOfHeadersThatAreIgnoredBecauseNobodyIsTrusted) {
  const auto ignored = [](std::string_view trusted, int hops, const char* name) {
    const ForwardedRow row{
        "", {.trusted = trusted, .hops = hops}, {{"Host", "a"}, {name, "6.6.6.6"}}, ""};
    return FinderFor(row).Find(PeerOf(row), row.headers).ignored_forwarding;
  };
  EXPECT_TRUE(ignored("", 0, "X-Forwarded-For"));
  EXPECT_TRUE(ignored("", 0, "forwarded"));
  EXPECT_FALSE(ignored("", 0, "X-Forwarded-Host"));
  EXPECT_FALSE(ignored("", 1, "X-Forwarded-For"));
  EXPECT_FALSE(ignored("10.0.0.0/8", 0, "Forwarded"));
  EXPECT_FALSE(ignored("192.0.2.0/24", 0, "X-Forwarded-For")) << "somebody else is trusted";
}

}  // namespace
}  // namespace weir
