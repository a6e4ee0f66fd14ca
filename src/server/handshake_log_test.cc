#include "server/handshake_log.h"

#include <gmock/gmock.h>

namespace weir {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string Said(HandshakeLog& log, SteadyTime now, const TlsFailure& failure) {
  testing::internal::CaptureStderr();
  log.Note(now, failure);
  return testing::internal::GetCapturedStderr();
}

TEST(HandshakeLog, SpeaksOnceAMinuteAndCountsTheRest) {
  const Log to;
  HandshakeLog log(to, "http");
  const TlsFailure failure{.peer = "192.0.2.1", .why = "http request"};
  const SteadyTime start{};
  EXPECT_THAT(Said(log, start, failure),
              HasSubstr("listen: http: TLS handshake failed with 192.0.2.1: http request\n"));
  EXPECT_EQ(Said(log, start + 1s, failure), "");
  EXPECT_EQ(Said(log, start + 59s, failure), "");
  EXPECT_THAT(Said(log, start + 60s, {.why = "no shared cipher"}),
              HasSubstr("TLS handshake failed: no shared cipher (and 2 since the last such line)"));
  EXPECT_EQ(Said(log, start + 61s, failure), "");
}

}  // namespace
}  // namespace weir
