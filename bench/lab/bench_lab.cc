// Writes an access log in the combined format to standard output, for ./bench.sh lab:
//
//   bench_lab LINES CLIENTS
//
// There are some hundred lines a second, the same in every run. Few clients ask much and many ask
// little; every seventh address is IPv6, and every tenth client logs in now and then.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "harness/random.h"

namespace {

constexpr std::int64_t kBegin = 1'767'225'600;  // 2026-01-01 00:00:00 UTC
constexpr std::uint64_t kLinesASecond = 116;    // 10 million are a day.

constexpr std::array<std::string_view, 8> kAgents = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/17.5 Safari",
    "python-requests/2.32.3",
    "okhttp/4.12.0",
    "curl/8.8.0",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"};
constexpr std::array<std::string_view, 4> kReferers = {"-", "-", "https://shop.example.com/",
                                                       "https://www.google.com/"};
constexpr std::array<std::string_view, 8> kPlaces = {"/",
                                                     "/cart",
                                                     "/assets/app.3f9c1b7d.js",
                                                     "/assets/style.81bd02aa.css",
                                                     "/api/v1/session",
                                                     "/api/v1/cart/items",
                                                     "/favicon.ico",
                                                     "/api/v1/recommendations?limit=12"};

std::vector<std::string> Addresses(std::size_t count, weir::bench::Random& random) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < count; ++i) {
    char text[48];
    const std::uint64_t bits = random.Word();
    if (i % 7 == 3) {
      std::snprintf(text, sizeof text, "2001:db8:%x:%x::%x", static_cast<unsigned>(bits & 0xffff),
                    static_cast<unsigned>(bits >> 16 & 0xffff),
                    static_cast<unsigned>(bits >> 32 & 0xffff));
    } else {
      std::snprintf(text, sizeof text, "%u.%u.%u.%u", static_cast<unsigned>(1 + (bits & 127)),
                    static_cast<unsigned>(bits >> 8 & 255), static_cast<unsigned>(bits >> 16 & 255),
                    static_cast<unsigned>(bits >> 24 & 255));
    }
    addresses.emplace_back(text);
  }
  return addresses;
}

void Append(std::string& line, std::uint64_t number) {
  char digits[24];
  line.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void AppendRequest(std::string& line, bool logs_in, weir::bench::Random& random) {
  const std::uint64_t kind = random.Below(100);
  if (kind < 10 && logs_in) {
    line += "POST /auth/login HTTP/1.1\" 200 ";
  } else if (kind < 40) {
    line += "GET ";
    line += kPlaces[random.Below(kPlaces.size())];
    line += " HTTP/1.1\" 200 ";
  } else if (kind < 70) {
    line += "GET /products/";
    Append(line, random.Below(20'000));
    line += " HTTP/2.0\" 200 ";
  } else if (kind < 85) {
    line += "GET /api/v1/users/";
    Append(line, random.Below(20'000));
    line += "/orders?page=";
    Append(line, random.Below(10));
    line += " HTTP/1.1\" 200 ";
  } else {
    line += "GET /search?q=item%20";
    Append(line, random.Below(5'000));
    line += "&sort=price HTTP/1.1\" 200 ";
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::uint64_t lines = std::strtoull(words[1], nullptr, 10);
  const std::size_t clients = std::strtoull(words[2], nullptr, 10);
  weir::bench::Random random(1);
  const std::vector<std::string> addresses = Addresses(clients, random);
  std::string line;
  std::int64_t shown = -1;
  char time[40] = "";
  for (std::uint64_t i = 0; i < lines; ++i) {
    // The first have some hundred times as much as those in the middle.
    const double part = random.Fraction();
    const auto client = static_cast<std::size_t>(part * part * part * static_cast<double>(clients));
    const auto second = static_cast<std::int64_t>(i / kLinesASecond);
    if (second != shown) {
      const std::time_t at = kBegin + second;
      std::tm parts{};
      ::gmtime_r(&at, &parts);
      std::strftime(time, sizeof time, " - - [%d/%b/%Y:%H:%M:%S +0000] \"", &parts);
      shown = second;
    }
    line = addresses[client];
    line += time;
    AppendRequest(line, client % 10 == 0, random);
    Append(line, random.Below(50'000));
    line += " \"";
    line += kReferers[random.Below(kReferers.size())];
    line += "\" \"";
    line += kAgents[(client + random.Below(2)) % kAgents.size()];
    line += "\"\n";
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) return 1;
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
