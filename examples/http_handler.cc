// An HTTP handler that answers 429 with Retry-After and X-RateLimit headers. The server is left
// out: what matters is the few lines between a request and its reply.
#include <cstdio>
#include <map>
#include <string>

#include <weir/weir.h>

namespace {

struct Request {
  std::string path;
  std::string api_key;
};

struct Response {
  int status = 200;
  std::map<std::string, std::string> headers{};
  std::string body{};
};

// Every reply tells the client where it stands, a refusal also when to come back.
Response Limited(weir::Limiter& limiter, weir::Clock& clock, const Request& request) {
  const weir::Now now = clock.Read();
  const weir::Decision decision = limiter.Check(request.api_key, now);

  Response response;
  const auto reset_at = std::chrono::ceil<std::chrono::seconds>(now.wall + decision.reset_after);
  response.headers["X-RateLimit-Limit"] = std::to_string(decision.limit);
  response.headers["X-RateLimit-Remaining"] = std::to_string(decision.remaining);
  response.headers["X-RateLimit-Reset"] = std::to_string(reset_at.time_since_epoch().count());
  if (decision.allowed) {
    response.body = "here is " + request.path;
    return response;
  }
  response.status = 429;
  response.body = "too many requests";
  response.headers["Cache-Control"] = "no-store";
  // A request that can never pass is not told to try again.
  if (decision.retry_after != weir::kNever) {
    const auto seconds = weir::RoundUpTo<std::chrono::seconds>(decision.retry_after);
    response.headers["Retry-After"] = std::to_string(seconds);
  }
  return response;
}

void Print(const Response& response) {
  std::printf("HTTP/1.1 %d\n", response.status);
  for (const auto& [name, value] : response.headers) {
    std::printf("  %s: %s\n", name.c_str(), value.c_str());
  }
  std::printf("  (%s)\n", response.body.c_str());
}

}  // namespace

int main() {
  weir::Clock& clock = weir::SystemClock::Shared();
  auto limiter = weir::Limiter::Make("10/min burst 3");
  if (!limiter) {
    std::fprintf(stderr, "%s\n", limiter.error().message.c_str());
    return 1;
  }
  std::puts("Ten a minute for each API key, three at once. Four come at once:");
  for (int i = 0; i < 4; ++i) Print(Limited(*limiter, clock, {"/search", "key-of-ann"}));
  return 0;
}
