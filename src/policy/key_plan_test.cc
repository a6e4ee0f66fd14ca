#include "policy/key_plan.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <weir/policy.h>

#include "policy/compiled_policy.h"

namespace weir {
namespace {

// Rules whose keys may come out alike and must not, or must.
constexpr std::string_view kPolicyOfKeys = R"(
rules:
  - { name: user, key: user, limit: 1/s }
  - { name: hashed, key: { user: { hash: true } }, limit: 1/s }
  - { name: either, key: { first_of: [user, ip] }, limit: 1/s }
  - { name: org, key: org, limit: 1/s }
  - { name: user_org, key: [user, org], limit: 1/s }
  - { name: org_user, key: [org, user], limit: 1/s }
  - { name: ip, key: ip, limit: 1/s }
  - { name: net, key: { ip: { v4: 24, v6: 48 } }, limit: 1/s }
  - { name: visitor, key: fingerprint, limit: 1/s }
  - { name: header, key: header.x-team, limit: 1/s }
  - { name: path, key: [user, path], limit: 1/s }
  - { name: part, match: { path: "/p/{id}/**" }, key: path.id, limit: 1/s }
  - { name: all, key: global, limit: 1/s }
)";

class KeyPlans : public testing::Test {
 protected:
  const CompiledPolicy& compiled() const { return policy_.compiled(); }

  struct BothForms {
    std::string text;
    bool text_complete;
    KeyPlan::HashedKey hashed;
  };
  BothForms KeyOf(std::uint32_t rule, const Request& request) const {
    const KeyPlan& plan = compiled().keys[compiled().rules[rule].key];
    const Facts facts(request);
    SubjectWriter writer;
    const bool complete = plan.Write(facts, compiled().MatchOf(rule), *compiled().hash, writer);
    return {.text = std::string(writer.Finish()),
            .text_complete = complete,
            .hashed = plan.Hash(facts, compiled().MatchOf(rule), hasher_)};
  }

 private:
  const Policy policy_ = Policy::Parse(kPolicyOfKeys).policy.value();
  const KeyHasher hasher_{HashKind::kXxh3, 1};
};

RC_GTEST_FIXTURE_PROP(KeyPlans, HashAlikeWhatReadsAlikeAndNothingElse, ()) {
  const auto some = [](std::vector<std::string> texts) {
    return *rc::gen::elementOf(std::move(texts));
  };
  std::map<std::string, std::uint64_t> by_text;
  std::map<std::uint64_t, std::string> by_hash;
  for (int i = 0; i < 30; ++i) {
    const std::string user = some({"", "a", "b", "a&org=b", "user=a", "global", "10.0.0.1"});
    const std::string org = some({"", "a", "b", "=", "&"});
    const std::string ip = some({"", "10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "2001:db8::1",
                                 "2001:db8:0:0:0:0:0:1", "0::ffff:10.0.0.1", "no address"});
    const std::string path = some({"", "/", "/p/a", "/p/b/c", "/p/%61", "/q"});
    const std::string team = some({"", "a", "b"});
    const std::string agent = some({"", "a", "b"});
    const std::array<NamedValue, 2> headers = {NamedValue{"X-Team", team},
                                               NamedValue{"User-Agent", agent}};
    const Request request{.ip = ip, .user = user, .org = org, .path = path, .headers = headers};
    for (std::uint32_t rule = 0; rule < compiled().rules.size(); ++rule) {
      const BothForms key = KeyOf(rule, request);
      RC_ASSERT(key.text_complete == key.hashed.complete);
      RC_ASSERT(by_text.try_emplace(key.text, key.hashed.hash).first->second == key.hashed.hash);
      RC_ASSERT(by_hash.try_emplace(key.hashed.hash, key.text).first->second == key.text);
    }
  }
}

TEST_F(KeyPlans, TellApartValuesThatAreTooLongForTheText) {
  const std::string long_user(1000, 'a');
  const std::string other_user = long_user.substr(1) + "b";
  EXPECT_NE(KeyOf(0, {.user = long_user}).hashed.hash, KeyOf(0, {.user = other_user}).hashed.hash);
  EXPECT_EQ(KeyOf(0, {.user = long_user}).hashed.hash, KeyOf(0, {.user = long_user}).hashed.hash);
}

TEST_F(KeyPlans, CountOneAddressAsOneHoweverItIsWritten) {
  constexpr std::uint32_t kIp = 6;
  const std::uint64_t plain = KeyOf(kIp, {.ip = "203.0.113.9"}).hashed.hash;
  EXPECT_EQ(KeyOf(kIp, {.ip = "::ffff:203.0.113.9"}).hashed.hash, plain);
  EXPECT_EQ(KeyOf(kIp, {.ip = "0::ffff:cb00:7109"}).hashed.hash, plain);
  EXPECT_NE(KeyOf(kIp, {.ip = "203.0.113.10"}).hashed.hash, plain);
}

}  // namespace
}  // namespace weir
