#include "net/endpoint.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Endpoint, IsReadAndWrittenAlike) {
  for (const char* text : {"127.0.0.1:8080", "[::1]:80", "localhost:0", "unix:/run/weir.sock"}) {
    const Result<Endpoint> endpoint = Endpoint::Parse(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(endpoint->ToString(), text);
  }
  EXPECT_EQ(Endpoint::Parse("[::1]:80")->host, "::1");
  EXPECT_TRUE(Endpoint::Parse("unix:/a")->is_unix());
}

TEST(Endpoint, RefusesWhatIsNone) {
  for (const char* text : {"", "8080", ":80", "::1:80", "[::1]", "host:", "host:65536", "host:-1",
                           "host:8o", "unix:", "unix:relative", "[]:80"}) {
    EXPECT_FALSE(Endpoint::Parse(text)) << text;
  }
  EXPECT_FALSE(Endpoint::Parse("unix:/" + std::string(107, 'a')));
}

}  // namespace
}  // namespace weir
