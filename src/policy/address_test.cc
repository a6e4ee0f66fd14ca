#include "policy/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

std::string Canonical(std::string_view text) {
  const std::optional<IpAddress> address = IpAddress::Parse(text);
  return address ? address->ToString() : "none";
}

std::string Forwarded(std::string_view text) {
  const std::optional<IpAddress> address = IpAddress::ParseForwarded(text);
  return address ? address->ToString() : "none";
}

std::string RangeText(std::string_view text) {
  const std::optional<IpRange> range = IpRange::Parse(text);
  return range ? range->ToString() : "none";
}

IpAddress Address(std::string_view text) { return IpAddress::Parse(text).value(); }

IpRangeSet SetOf(const std::vector<std::string>& texts) {
  std::vector<IpRange> ranges;
  for (const std::string& text : texts) ranges.push_back(IpRange::Parse(text).value());
  return IpRangeSet(ranges);
}

// What the C library says, with IPv4 in IPv6 as IPv4.
std::optional<IpAddress> ByInetPton(const std::string& text) {
  if (text.find('\0') != std::string::npos) return std::nullopt;
  std::array<std::uint8_t, 4> v4{};
  if (inet_pton(AF_INET, text.c_str(), v4.data()) == 1) return IpAddress::FromV4(v4);
  std::array<std::uint8_t, 16> v6{};
  if (inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return IpAddress::FromV6(v6);
  return std::nullopt;
}

// Bytes of which many are zero, as in real addresses.
rc::Gen<std::uint8_t> Byte() {
  return rc::gen::weightedOneOf<std::uint8_t>(
      {{3, rc::gen::just(std::uint8_t{0})}, {2, rc::gen::arbitrary<std::uint8_t>()}});
}

rc::Gen<IpAddress> AnyAddress() {
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::container<std::array<std::uint8_t, 4>>(Byte()), IpAddress::FromV4),
      rc::gen::map(rc::gen::container<std::array<std::uint8_t, 16>>(Byte()), IpAddress::FromV6));
}

// The same IPv6 address as people write it: any groups in full, in capitals, `::` for any run of
// zeros or for none, the end as IPv4.
std::string Rewritten(const std::array<std::uint8_t, 16>& bytes) {
  const bool dotted = *rc::gen::arbitrary<bool>();
  const std::size_t groups = dotted ? 6 : 8;
  const auto gap = *rc::gen::inRange<std::size_t>(0, groups + 1);
  std::string text;
  for (std::size_t i = 0; i < groups;) {
    std::size_t end = i;
    while (i == gap && end < groups && bytes[2 * end] == 0 && bytes[2 * end + 1] == 0) ++end;
    if (end > i) {
      text += "::";
      i = end;
      continue;
    }
    if (!text.empty() && !text.ends_with("::")) text += ':';
    const unsigned group = bytes[2 * i] * 256u + bytes[2 * i + 1];
    std::array<char, 8> buffer;
    const char* const format = *rc::gen::element("%x", "%X", "%04x", "%02X");
    text.append(buffer.data(), static_cast<std::size_t>(
                                   std::snprintf(buffer.data(), buffer.size(), format, group)));
    ++i;
  }
  if (!dotted) return text;
  if (!text.ends_with(':')) text += ':';
  for (std::size_t i = 12; i < 16; ++i) text += (i > 12 ? "." : "") + std::to_string(bytes[i]);
  return text;
}

TEST(IpAddress, IsWrittenAsRfc5952Says) {
  EXPECT_EQ(Canonical("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(Canonical("255.255.255.255"), "255.255.255.255");
  EXPECT_EQ(Canonical("2001:0DB8:0:0:0:0:0:1"), "2001:db8::1");
  EXPECT_EQ(Canonical("::"), "::");
  EXPECT_EQ(Canonical("0:0:0:0:0:0:0:1"), "::1");
  EXPECT_EQ(Canonical("1:0:0:0:0:0:0:0"), "1::");
  EXPECT_EQ(Canonical("2001:db8:0:1:1:1:1:1"), "2001:db8:0:1:1:1:1:1") << "one group is no run";
  EXPECT_EQ(Canonical("2001:db8:0:0:1:0:0:1"), "2001:db8::1:0:0:1") << "the first of two";
  EXPECT_EQ(Canonical("2001:0:0:1:0:0:0:1"), "2001:0:0:1::1") << "the longer of two";
  EXPECT_EQ(Canonical("1:2:3:4:5:6:7::"), "1:2:3:4:5:6:7:0");
  EXPECT_EQ(Canonical("::2:3:4:5:6:7:8"), "0:2:3:4:5:6:7:8");
  EXPECT_EQ(Canonical("64:ff9b::192.0.2.33"), "64:ff9b::c000:221");
  EXPECT_EQ(Canonical("::192.0.2.33"), "::c000:221");
  EXPECT_EQ(Canonical("0000:0000:0000:0000:0000:0000:255.255.255.255"), "::ffff:ffff");
}

TEST(IpAddress, TakesIPv4WrittenAsIPv6ForIPv4) {
  for (const char* text : {"::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1",
                           "0000:0000:0000:0000:0000:ffff:192.0.2.1", "::ffff:c000:0201"}) {
    EXPECT_EQ(Canonical(text), "192.0.2.1") << text;
    EXPECT_TRUE(Address(text).is_v4());
  }
  EXPECT_FALSE(Address("::fffe:192.0.2.1").is_v4());
  EXPECT_FALSE(Address("::ffff:0:192.0.2.1").is_v4());
}

TEST(IpAddress, RefusesWhatOthersMightReadDifferently) {
  for (const char* text : {"",
                           " ",
                           "1",
                           "1.2",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.",
                           ".1.2.3",
                           "1..2.3",
                           "256.1.1.1",
                           "1.1.1.1000",
                           "01.2.3.4",
                           "1.2.3.00",
                           "0x1.2.3.4",
                           "1.2.3.4 ",
                           " 1.2.3.4",
                           "1.2.3.4:80",
                           "1.2.3.4/32",
                           "-1.2.3.4",
                           "+1.2.3.4",
                           "1,2,3,4",
                           "1.2.3.4%eth0",
                           "2130706433",
                           ":",
                           ":::",
                           "1",
                           "1:",
                           ":1",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7:8::",
                           "::1:2:3:4:5:6:7:8",
                           "1:2:3:4::5:6:7:8",
                           "1::2::3",
                           "::1:",
                           ":1::",
                           "1:::2",
                           "12345::",
                           "00001::",
                           "g::",
                           "[::1]",
                           "::1%eth0",
                           "::1/64",
                           " ::1",
                           "::1 ",
                           "1.2.3.4::",
                           "::1.2.3",
                           "::1.2.3.4.5",
                           "::1.2.3.4:5",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "1:2:3:4:5:1.2.3.4",
                           "::01.2.3.4",
                           "::256.1.1.1",
                           "::ffff:1.2.3.4:",
                           "unknown",
                           "localhost",
                           "0000:0000:0000:0000:0000:0000:0255.255.255.255"}) {
    EXPECT_EQ(Canonical(text), "none") << text;
  }
  using namespace std::string_view_literals;
  EXPECT_EQ(Canonical("1.2.3.4\0"sv), "none");
  EXPECT_EQ(Canonical("::1\0"sv), "none");
  EXPECT_EQ(Canonical("::1\xff"), "none");
  EXPECT_EQ(Canonical(std::string(1 << 16, ':')), "none");
}

RC_GTEST_PROP(IpAddress, IsReadBackFromItsText, ()) {
  const IpAddress address = *AnyAddress();
  const std::string text = address.ToString();
  const std::optional<IpAddress> again = IpAddress::Parse(text);
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == address);
  RC_ASSERT(ByInetPton(text) == again);
  RC_ASSERT(text.size() < IpAddress::kTextSize);
}

RC_GTEST_PROP(IpAddress, IsTheSameHoweverItIsWritten, ()) {
  const auto bytes = *rc::gen::container<std::array<std::uint8_t, 16>>(Byte());
  const std::string text = Rewritten(bytes);
  RC_ASSERT(ByInetPton(text) == IpAddress::FromV6(bytes));
  RC_ASSERT(IpAddress::Parse(text) == IpAddress::FromV6(bytes));
}

// One to three places of the text changed to something that addresses are made of, or nearly so.
std::string Mutated(std::string text) {
  const auto pieces = rc::gen::element<std::string>(
      "0", "1", "25", "a", "F", "g", "x", ":", "::", ".", " ", "%", "/", "ffff", std::string(1, 0));
  const int changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    const auto dropped = *rc::gen::inRange<std::size_t>(0, 3);
    text.replace(at, dropped, *rc::gen::arbitrary<bool>() ? *pieces : "");
  }
  return text;
}

RC_GTEST_PROP(IpAddress, AgreesWithInetPtonOnAlmostAddresses, ()) {
  for (int round = 0; round < 50; ++round) {
    const auto bytes = *rc::gen::container<std::array<std::uint8_t, 16>>(Byte());
    const std::string text =
        Mutated(*rc::gen::arbitrary<bool>() ? Rewritten(bytes) : (*AnyAddress()).ToString());
    RC_LOG() << "\"" << text << "\"\n";
    RC_ASSERT(IpAddress::Parse(text) == ByInetPton(text));
  }
}

RC_GTEST_PROP(IpAddress, AgreesWithInetPtonOnRandomText, ()) {
  for (int round = 0; round < 50; ++round) {
    const auto text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("01259aF::::...")));
    RC_ASSERT(IpAddress::Parse(text) == ByInetPton(text));
  }
}

// Every place with everything that could be mistaken for a number from 0 to 255.
TEST(IpAddress, AgreesWithInetPtonOnAlmostIPv4) {
  const std::vector<std::string> parts = {"",    "0",   "00",  "01",  "9",    "10",  "099", "100",
                                          "249", "255", "256", "300", "1000", "a",   "1a",  " 1",
                                          "1 ",  "+1",  "/",   ":",   "1.",   "\xb1"};
  for (const std::string& first : parts) {
    for (const std::string& second : parts) {
      for (const std::string& third : parts) {
        for (const std::string& fourth : parts) {
          const std::string text = first + "." + second + "." + third + "." + fourth;
          ASSERT_EQ(IpAddress::Parse(text), ByInetPton(text)) << text;
        }
      }
    }
  }
}

TEST(IpAddress, IsFoundInWhatProxiesWrite) {
  EXPECT_EQ(Forwarded("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(Forwarded(" \t192.0.2.1\t "), "192.0.2.1");
  EXPECT_EQ(Forwarded("192.0.2.1:0"), "192.0.2.1");
  EXPECT_EQ(Forwarded("192.0.2.1:65535"), "192.0.2.1");
  EXPECT_EQ(Forwarded("192.0.2.1:_web-1.x"), "192.0.2.1");
  EXPECT_EQ(Forwarded("2001:DB8::1"), "2001:db8::1");
  EXPECT_EQ(Forwarded("2001:db8::1:443"), "2001:db8::1:443") << "no port without brackets";
  EXPECT_EQ(Forwarded("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(Forwarded("[2001:db8::1]:443"), "2001:db8::1");
  EXPECT_EQ(Forwarded("fe80::1%eth0"), "fe80::1");
  EXPECT_EQ(Forwarded("[fe80::1%25en0]:80"), "fe80::1") << "a percent sign as URLs have it";
  EXPECT_EQ(Forwarded("[fe80::1%en0.4]:80"), "fe80::1");
  EXPECT_EQ(Forwarded("[::ffff:192.0.2.1]:80"), "192.0.2.1");
  EXPECT_EQ(Forwarded("::ffff:192.0.2.1"), "192.0.2.1");
}

TEST(IpAddress, IsNotFoundInJunk) {
  for (const char* text : {"",
                           " ",
                           "unknown",
                           "_hidden",
                           "-",
                           "192.0.2.1:",
                           "192.0.2.1:65536",
                           "192.0.2.1:123456",
                           "192.0.2.1:8a",
                           "192.0.2.1:-1",
                           "192.0.2.1:_",
                           "192.0.2.1:_a b",
                           "192.0.2.1 :80",
                           "192.0.2.1: 80",
                           "[192.0.2.1]",
                           "[192.0.2.1]:80",
                           "192.0.2.1%eth0",
                           "[2001:db8::1",
                           "2001:db8::1]",
                           "[2001:db8::1]80",
                           "[2001:db8::1]:",
                           "[2001:db8::1]x",
                           "[]",
                           "[]:80",
                           "[",
                           "[[::1]]",
                           "fe80::1%",
                           "[fe80::1%]",
                           "fe80::1%a b",
                           "fe80::1%a%b",
                           "[ ::1 ]",
                           "\"1.2.3.4\"",
                           "1.2.3.4 5.6.7.8",
                           "1.2.3.4;",
                           "for=1.2.3.4",
                           "1:2:3:4:5:6:7:8:80",
                           "\n1.2.3.4"}) {
    EXPECT_EQ(Forwarded(text), "none") << text;
  }
}

TEST(IpAddress, KeepsItsFirstBitsWhenMasked) {
  EXPECT_EQ(Address("192.0.2.255").Masked(24).ToString(), "192.0.2.0");
  EXPECT_EQ(Address("192.0.2.255").Masked(29).ToString(), "192.0.2.248");
  EXPECT_EQ(Address("192.0.2.255").Masked(32).ToString(), "192.0.2.255");
  EXPECT_EQ(Address("192.0.2.255").Masked(0).ToString(), "0.0.0.0");
  EXPECT_EQ(Address("192.0.2.255").Masked(64).ToString(), "192.0.2.255");
  EXPECT_EQ(Address("192.0.2.255").Masked(-1).ToString(), "0.0.0.0");
  EXPECT_EQ(Address("2001:db8:1:2:3:4:5:6").Masked(64).ToString(), "2001:db8:1:2::");
  EXPECT_EQ(Address("2001:db8:1:ffff::").Masked(56).ToString(), "2001:db8:1:ff00::");
  EXPECT_EQ(Address("ffff::ffff").Masked(127).ToString(), "ffff::fffe");
  EXPECT_EQ(Address("ffff::ffff").Masked(128).ToString(), "ffff::ffff");
}

TEST(IpRange, ReadsAnAddressAndAPrefix) {
  EXPECT_EQ(RangeText("10.0.0.0/8"), "10.0.0.0/8");
  EXPECT_EQ(RangeText("0.0.0.0/0"), "0.0.0.0/0");
  EXPECT_EQ(RangeText("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(RangeText("192.0.2.1/32"), "192.0.2.1");
  EXPECT_EQ(RangeText("2001:DB8::/32"), "2001:db8::/32");
  EXPECT_EQ(RangeText("::1"), "::1");
  EXPECT_EQ(RangeText("::1/128"), "::1");
  EXPECT_EQ(RangeText("::/0"), "::/0");
}

TEST(IpRange, TakesIPv4WrittenAsIPv6ForIPv4) {
  EXPECT_EQ(RangeText("::ffff:10.0.0.0/104"), "10.0.0.0/8");
  EXPECT_EQ(RangeText("::ffff:a00:0/104"), "10.0.0.0/8");
  EXPECT_EQ(RangeText("::ffff:0:0/96"), "0.0.0.0/0");
  EXPECT_EQ(RangeText("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(RangeText("::ffff:192.0.2.1/128"), "192.0.2.1");
  EXPECT_EQ(RangeText("::ffff:10.0.0.0/8"), "none");
  EXPECT_EQ(RangeText("::ffff:0:0/95"), "none");
  EXPECT_EQ(RangeText("::ffff:10.0.0.0/129"), "none");
}

TEST(IpRange, RefusesWhatMustBeAMistake) {
  for (const char* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1",
                           "10.0.0.0/+8", "10.0.0.0/8 ", "10.0.0.1/8", "10.0.0.0/8/8", "10/8",
                           "10.0.0.0/255.0.0.0", "2001:db8::/129", "2001:db8::1/64", "[::1]/128",
                           "::1%lo/128", "10.0.0.0/1000", "10.0.0.0/4294967304", "10.0.0.0/a"}) {
    EXPECT_EQ(RangeText(text), "none") << text;
  }
}

TEST(IpRange, HoldsAddressesOfItsOwnKindOnly) {
  EXPECT_TRUE(IpRange::Parse("10.0.0.0/8")->Contains(Address("10.255.0.1")));
  EXPECT_FALSE(IpRange::Parse("10.0.0.0/8")->Contains(Address("11.0.0.0")));
  EXPECT_TRUE(IpRange::Parse("10.0.0.0/8")->Contains(Address("::ffff:10.0.0.1")));
  EXPECT_FALSE(IpRange::Parse("0.0.0.0/0")->Contains(Address("::1")));
  EXPECT_FALSE(IpRange::Parse("::/0")->Contains(Address("1.2.3.4")));
  EXPECT_FALSE(IpRange::Parse("::/0")->Contains(Address("::ffff:1.2.3.4")));
  EXPECT_TRUE(IpRange::Parse("::/0")->Contains(Address("::1.2.3.4")));
}

TEST(IpRangeSet, HoldsNothingWhenEmpty) {
  EXPECT_TRUE(IpRangeSet().empty());
  EXPECT_FALSE(IpRangeSet().Contains(Address("127.0.0.1")));
  EXPECT_FALSE(SetOf({"127.0.0.1"}).empty());
}

TEST(IpRangeSet, HoldsWhatAnyOfItsRangesHolds) {
  const IpRangeSet set = SetOf({"10.0.0.0/8", "192.168.1.0/24", "192.168.3.0/24", "192.0.2.7",
                                "2001:db8::/32", "::1", "10.0.0.0/8"});
  for (const char* text : {"10.1.2.3", "192.168.1.9", "192.168.3.255", "192.0.2.7",
                           "2001:db8:ffff::1", "::1", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(set.Contains(Address(text))) << text;
  }
  for (const char* text : {"11.0.0.1", "192.168.2.1", "192.0.2.6", "192.0.2.8", "2001:db9::", "::2",
                           "0.0.0.1", "::", "a00::"}) {
    EXPECT_FALSE(set.Contains(Address(text))) << text;
  }
}

RC_GTEST_PROP(IpRangeSet, AgreesWithAskingEachRange, ()) {
  const auto few_bits = rc::gen::element<std::uint8_t>(0, 1, 128, 255);
  const auto address = [&]() {
    return *rc::gen::arbitrary<bool>()
               ? IpAddress::FromV4(*rc::gen::container<std::array<std::uint8_t, 4>>(few_bits))
               : IpAddress::FromV6(*rc::gen::container<std::array<std::uint8_t, 16>>(few_bits));
  };
  std::vector<IpRange> ranges;
  const auto count = *rc::gen::inRange(0, 20);
  for (int i = 0; i < count; ++i) {
    const IpAddress base = address();
    const auto prefix = *rc::gen::inRange(0, base.is_v4() ? 33 : 20);
    ranges.push_back({base.Masked(prefix), prefix});
  }
  const IpRangeSet set(ranges);
  for (int i = 0; i < 10; ++i) {
    const IpAddress asked = address();
    RC_ASSERT(set.Contains(asked) ==
              std::ranges::any_of(ranges, [&](const IpRange& r) { return r.Contains(asked); }));
  }
}

}  // namespace
}  // namespace weir
