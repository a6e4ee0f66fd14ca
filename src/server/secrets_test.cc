#include "server/secrets.h"

#include <array>

#include <gtest/gtest.h>

namespace weir {
namespace {

PolicySpec SpecWithSecrets() {
  PolicySpec spec;
  spec.identity["api_key"] = {.from = "query.token"};
  spec.identity["user"] = {.from = "header.X-User", .hash = true};
  KeyAttribute org("org");
  org.hash = true;
  spec.rules.push_back({.name = "a", .key = {org}, .limit = "1/s"});
  return spec;
}

TEST(Secrets, AreApiKeysAndWhereTheyComeFromAndCredentialsAndWhatIsHashed) {
  const Secrets secrets(SpecWithSecrets());
  for (const char* attribute : {"api_key", "query.token", "user", "header.x-user", "org",
                                "header.authorization", "header.cookie", "cookie.session"}) {
    EXPECT_TRUE(secrets.IsSecret(attribute)) << attribute;
  }
  for (const char* attribute : {"ip", "path", "tier", "header.x-team", "query.page"}) {
    EXPECT_FALSE(secrets.IsSecret(attribute)) << attribute;
  }
}

TEST(Secrets, AreShownByTheirBeginning) {
  const Secrets secrets(SpecWithSecrets());
  EXPECT_EQ(secrets.Shown("api_key", "sk-12345"), "\"sk…\"");
  EXPECT_EQ(secrets.Shown("api_key", "short"), "\"…\"");
  EXPECT_EQ(secrets.Shown("api_key", ""), "absent");
  EXPECT_EQ(secrets.Shown("tier", "professional"), "\"professional\"");
}

TEST(Secrets, AreKeptOutOfReasons) {
  const Secrets secrets(SpecWithSecrets());
  const std::array<NamedValue, 1> headers = {{{"Authorization", "Bearer abc, not absent"}}};
  const Request request{.user = "", .api_key = "sk-12345", .tier = "pro", .headers = headers};
  const auto shown = [&](const char* reason) { return secrets.InReason(reason, request); };
  EXPECT_EQ(shown(R"(api_key is "sk-12345", not sk-98765 or sk-0*)"), R"(api_key is "sk…", not …)");
  EXPECT_EQ(shown(R"(api_key is "sk-12345", but must not be sk-1*)"),
            R"(api_key is "sk…", but must not be …)");
  EXPECT_EQ(shown(R"(api_key is "sk-12345", not absent)"), R"(api_key is "sk…", not absent)");
  EXPECT_EQ(shown(R"(header.authorization is "Bearer abc, not absent", not Bearer xyz)"),
            R"(header.authorization is "Be…", not …)");
  EXPECT_EQ(shown(R"(api_key is "sk-12345", brought into bounds or not a number)"),
            R"(api_key is "sk…", brought into bounds or not a number)");
  // A reason about a value that the request has not is cut, lest it tell of another's secret.
  EXPECT_EQ(shown(R"(api_key is "sk-67890", not sk-98765)"), R"(api_key is "sk…")");
  EXPECT_EQ(shown("user is absent, not ann"), "user is absent, not …");
  EXPECT_EQ(shown("user is absent"), "user is absent");
  EXPECT_EQ(shown(R"(tier is "pro", not free)"), R"(tier is "pro", not free)");
  EXPECT_EQ(shown("none of the alternatives in \"any\" holds"),
            "none of the alternatives in \"any\" holds");
}

TEST(Secrets, AreKeptOutOfKeys) {
  const Secrets secrets(SpecWithSecrets());
  EXPECT_EQ(secrets.InKey("ip=1.2.3.4&api_key=sk-12345&tier=pro"),
            "ip=1.2.3.4&api_key=sk…&tier=pro");
  EXPECT_EQ(secrets.InKey("api_key=%20%20abc"), "api_key=…");
  EXPECT_EQ(secrets.InKey("api_key~=5f3c5f3c"), "api_key~=5f3c5f3c");
  EXPECT_EQ(secrets.InKey("user=&api_key=sk-12345 (shared by all)"),
            "user=&api_key=sk… (shared by all)");
  EXPECT_EQ(secrets.InKey("api_key="), "api_key=");
  EXPECT_EQ(secrets.InKey("global"), "global");
}

}  // namespace
}  // namespace weir
