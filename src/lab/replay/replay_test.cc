// threads
// A replay is what the service would have done: its decisions are those of an engine that is asked
// by hand, one request after the other, with another clock and another way in.
#include "lab/replay/replay.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/engine_under_test.h"
#include "lab/replay/replay_report.h"

namespace weir::lab {
namespace {

constexpr std::string_view kPolicy = R"(
deny: { ip: 198.51.100.66 }
rules:
  - { name: per-ip, key: ip, limit: 40/min, algorithm: sliding_window }
  - { name: per-path, key: [ip, path], limit: 3/s burst 6 }
  - { name: login, match: { path: /login, method: POST }, key: ip, limit: 5/min, algorithm: sliding_log,
      block: { after: 4 denials in 1min, for: 2min } }
  - { name: search, match: { query.q: present }, key: query.q, limit: 10/min, algorithm: fixed_window }
  - { name: trial, key: ip, limit: 20/min, mode: shadow }
)";

struct Asked {
  std::int64_t milliseconds;
  std::string ip;
  std::string method;
  std::string path;
};

std::vector<Asked> ManyRequests(int count, std::int64_t most_disorder) {
  std::mt19937 random(11);
  std::vector<Asked> requests;
  std::int64_t now = 1'767'323'045'000;
  for (int i = 0; i < count; ++i) {
    now += static_cast<std::int64_t>(random() % 120);
    const std::int64_t at =
        most_disorder == 0 ? now : now - static_cast<std::int64_t>(random()) % most_disorder;
    const auto client = random() % 40 * (random() % 40) / 40;
    const bool login = random() % 8 == 0;
    const std::string path = login               ? "/login"
                             : random() % 5 == 0 ? "/find?q=w%6frd" + std::to_string(random() % 4)
                                                 : "/p/" + std::to_string(random() % 3);
    requests.push_back({.milliseconds = at,
                        .ip = client == 7 ? "198.51.100.66" : "192.0.2." + std::to_string(client),
                        .method = login ? "POST" : "GET",
                        .path = path});
  }
  return requests;
}

std::string CsvOf(const std::vector<Asked>& requests) {
  std::string text = "time,ip,method,path\n";
  for (const Asked& asked : requests) {
    text += std::to_string(asked.milliseconds) + "," + asked.ip + "," + asked.method + "," +
            asked.path + "\n";
  }
  return text;
}

// As people read them from a file.
class DecisionsOf {
 public:
  DecisionsOf() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-replay-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~DecisionsOf() { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "decisions") const {
    return (folder_ / name).string();
  }
  std::string Text() const {
    std::ifstream in(path());
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path folder_;
};

ReplayResult Played(ReplaySettings settings, const std::string& text) {
  if (settings.logs.files.empty()) settings.logs.files = {"-"};
  std::istringstream in(text);
  Result<ReplayResult> result = Replay(settings, in);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  return result ? *std::move(result) : ReplayResult();
}

struct ByHand {
  std::vector<std::string> lines{};  // Of the decisions, by the place of the request.
  std::uint64_t denied = 0;
  std::uint64_t trial_denied = 0;
};

ByHand AskByHand(const std::vector<Asked>& requests) {
  std::vector<std::size_t> order(requests.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::pair(requests[i].milliseconds, i); });
  ManualClock clock(WallTime(std::chrono::milliseconds(requests[order[0]].milliseconds)));
  Engine engine = *Engine::Make(PolicyOf(kPolicy), {.clock = &clock});
  ByHand result;
  result.lines.resize(requests.size());
  for (const std::size_t i : order) {
    const Asked& asked = requests[i];
    clock.Advance(WallTime(std::chrono::milliseconds(asked.milliseconds)) - clock.Read().wall);
    const std::size_t mark = asked.path.find("?q=w%6frd");
    const std::string word = mark == std::string::npos ? "" : "word" + asked.path.substr(mark + 9);
    const NamedValue query{.name = "q", .value = word};
    std::array<RuleDecision, 8> each;
    const Answer answer = engine.Check(
        {.ip = asked.ip, .method = asked.method, .path = asked.path, .query = {&query, 1}}, {},
        each);
    const Decision& decision = answer.decision;
    result.denied += decision.allowed ? 0U : 1U;
    for (std::size_t j = 0; j < answer.rules; ++j) {
      result.trial_denied += each[j].shadow && !each[j].decision.allowed ? 1U : 0U;
    }
    nlohmann::ordered_json line = {{"line", i + 2}, {"allowed", decision.allowed}};
    line["rule"] = decision.rule.empty() ? nlohmann::ordered_json() : decision.rule;
    line["remaining"] = decision.rule.empty() ? nlohmann::ordered_json()
                                              : nlohmann::ordered_json(decision.remaining);
    line["retry_after_ms"] =
        decision.retry_after == kNever
            ? nlohmann::ordered_json()
            : nlohmann::ordered_json(RoundUpTo<std::chrono::milliseconds>(decision.retry_after));
    result.lines[i] = line.dump();
  }
  return result;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class ReplayedDecisions : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(ReplayedDecisions, AreThoseOfAnEngineThatIsAskedByHand) {
  const std::vector<Asked> requests = ManyRequests(12'000, GetParam());
  const ByHand expected = AskByHand(requests);
  ASSERT_GT(expected.denied, 1'000U);
  ASSERT_LT(expected.denied, 11'000U);
  ASSERT_GT(expected.trial_denied, 10U);
  for (const int threads : {1, 3}) {
    const DecisionsOf files;
    ReplaySettings settings{.policy = PolicyOf(kPolicy), .decisions = files.path()};
    settings.logs.threads = threads;
    const ReplayResult result = Played(settings, CsvOf(requests));
    EXPECT_EQ(result.outcome.requests, requests.size());
    EXPECT_EQ(result.outcome.denied, expected.denied);
    EXPECT_EQ(result.outcome.rules[4].shadow_denied, expected.trial_denied);
    EXPECT_GT(result.outcome.deny_list, 0U);
    EXPECT_TRUE(files.Text() == Joined(expected.lines));
  }
}

// In order; within the horizon; and out of order by more than there is room for in memory.
INSTANTIATE_TEST_SUITE_P(Disorder, ReplayedDecisions, ::testing::Values(0, 3'000, 50'000));

TEST(Replay, CountsByRuleByKeyAndOverTime) {
  std::string text = "time,ip,path\n";
  for (int i = 0; i < 100; ++i) text += "1767323045,192.0.2.1,/a\n";
  for (int i = 0; i < 10; ++i) text += "1767323045,192.0.2.2,/a\n";
  for (int i = 0; i < 10; ++i) text += "1767326645,192.0.2.3,/a\n";
  const ReplayResult result =
      Played({.policy = PolicyOf("rules: [{ name: per-ip, key: ip, limit: 5/min }]")}, text);
  EXPECT_EQ(result.outcome.requests, 120U);
  EXPECT_EQ(result.outcome.denied, 95U + 5 + 5);
  EXPECT_EQ(result.outcome.addresses_denied, 3U);
  ASSERT_EQ(result.outcome.rules.size(), 1U);
  EXPECT_EQ(result.outcome.rules[0].allowed, 15U);
  EXPECT_EQ(result.outcome.rules[0].denied, 105U);
  EXPECT_EQ(result.outcome.rules[0].keys_denied, 3U);
  EXPECT_EQ(result.outcome.rules[0].last_denied - result.outcome.rules[0].first_denied,
            std::chrono::hours(1));
  ASSERT_EQ(result.outcome.offenders.size(), 3U);
  EXPECT_EQ(result.outcome.offenders[0].key, "ip=192.0.2.1");
  EXPECT_EQ(result.outcome.offenders[0].denied, 95U);
  EXPECT_EQ(result.outcome.offenders[0].requests, 100U);
  EXPECT_EQ(result.bins.Count(0, 0), 110U);
  EXPECT_EQ(result.bins.Count(0, 1), 100U);
  EXPECT_EQ(result.bins.Count(result.bins.size() - 1, 0), 10U);
}

TEST(Replay, SaysWhoIsNewlyDeniedAndNewlyAllowed) {
  std::string text = "time,ip,path\n";
  for (int i = 0; i < 10; ++i) text += "1767323045,192.0.2.1,/a\n";
  for (int i = 0; i < 10; ++i) text += "1767323045,192.0.2.2,/b\n";
  ReplaySettings settings{
      .policy = PolicyOf("rules: [{ name: a, match: { path: /a }, key: ip, limit: 4/min }]"),
      .against = PolicyOf("rules: [{ name: b, match: { path: /b }, key: ip, limit: 7/min }]")};
  const ReplayResult result = Played(settings, text);
  EXPECT_EQ(result.outcome.denied, 6U);
  ASSERT_TRUE(result.against.has_value());
  EXPECT_EQ(result.against->denied, 3U);
  EXPECT_EQ(result.newly_denied.requests, 3U);
  ASSERT_EQ(result.newly_denied.rules.size(), 1U);
  EXPECT_EQ(result.newly_denied.rules[0].rule, "b");
  ASSERT_EQ(result.newly_denied.keys.size(), 1U);
  EXPECT_EQ(result.newly_denied.keys[0].key, "ip=192.0.2.2");
  EXPECT_EQ(result.newly_denied.keys[0].denied, 3U);
  EXPECT_EQ(result.newly_allowed.requests, 6U);
  EXPECT_EQ(result.newly_allowed.rules[0].rule, "a");
  EXPECT_EQ(result.newly_allowed.keys[0].key, "ip=192.0.2.1");
  EXPECT_EQ(result.change_bins.Count(0, 0), 3U);
  EXPECT_EQ(result.change_bins.Count(0, 1), 6U);
}

TEST(Replay, SpreadsWholeSecondsIfAskedTo) {
  std::string text = "time,ip\n";
  for (int second = 0; second < 3; ++second) {
    for (int i = 0; i < 1'000; ++i) text += std::to_string(1'767'323'045 + second) + ",192.0.2.1\n";
  }
  ReplaySettings settings{.policy =
                              PolicyOf("rules: [{ name: all, key: ip, limit: 1000/s burst 10 }]")};
  EXPECT_EQ(Played(settings, text).outcome.denied, 3U * 990);
  settings.spread = true;
  const ReplayResult result = Played(settings, text);
  EXPECT_EQ(result.outcome.denied, 0U);
  EXPECT_EQ(result.outcome.requests, 3'000U);
}

TEST(Replay, SpreadsOverManyBlocksAndLeavesFinerTimesAlone) {
  std::string text = "time,ip,path\n";
  for (int i = 0; i < 20'000; ++i) text += "1767323045,192.0.2.1,/" + std::string(60, 'x') + "\n";
  text += "1767323046.5,192.0.2.1,/\n1767323046.5,192.0.2.1,/\n";
  ReplaySettings settings{
      .policy = PolicyOf("rules: [{ name: all, key: ip, limit: 20000/s burst 1 }]"),
      .spread = true};
  const ReplayResult result = Played(settings, text);
  EXPECT_EQ(result.outcome.requests, 20'002U);
  EXPECT_EQ(result.outcome.denied, 1U);
}

TEST(Replay, SaysWhatTheLogCannotAnswer) {
  const ReplayResult result =
      Played({.policy = PolicyOf(
                  "rules:\n  - { name: keys, key: api_key, limit: 5/min }\n"
                  "  - { name: teams, match: { header.x-team: present }, key: ip, limit: 5/min }\n"
                  "  - { name: fine, key: ip, limit: 5/min }\n")},
             "time,ip\n1767323045,192.0.2.1\n");
  ASSERT_EQ(result.unanswered.size(), 2U);
  EXPECT_NE(result.unanswered[0].find("api_key, which keys asks for"), std::string::npos);
  EXPECT_NE(result.unanswered[1].find("header.x-team, which teams asks for"), std::string::npos);
}

TEST(Replay, TakesHeadersAndCookiesFromColumnsOfTheirNames) {
  const ReplayResult result =
      Played({.policy = PolicyOf("rules:\n  - { name: a, key: header.x-team, limit: 1/min }\n"
                                 "  - { name: b, key: cookie.session, limit: 100/min }\n"
                                 "  - { name: c, key: header.user-agent, limit: 100/min }\n")},
             "time,ip,x-team,cookie_session,user_agent\n"
             "1767323045,192.0.2.1,red,s1,curl\n1767323045,192.0.2.1,blue,s1,curl\n"
             "1767323045,192.0.2.1,red,s1,curl\n");
  EXPECT_TRUE(result.unanswered.empty());
  EXPECT_EQ(result.outcome.denied, 1U);
  EXPECT_EQ(result.outcome.offenders[0].key, "header.x-team=red");
}

TEST(Replay, TellsOfDelaysInQueues) {
  const ReplayResult result = Played(
      {.policy =
           PolicyOf("rules: [{ name: q, key: ip, limit: 1/s burst 3, algorithm: leaky_bucket, "
                    "queue: true }]")},
      "time,ip\n1767323045,192.0.2.1\n1767323045,192.0.2.1\n1767323045,192.0.2.1\n");
  EXPECT_EQ(result.outcome.denied, 0U);
  EXPECT_EQ(result.outcome.rules[0].delayed, 2U);
  EXPECT_EQ(result.outcome.rules[0].longest_delay, std::chrono::seconds(2));
}

TEST(Replay, WritesDecisionsOfSeveralFilesOneAfterTheOther) {
  const DecisionsOf files;
  std::ofstream(files.path("b.csv"))
      << "time,ip\n1767323047,1.2.3.4\nrubbish\n1767323045,1.2.3.4\n";
  std::ofstream(files.path("a.csv")) << "time,ip\n1767323046,1.2.3.4\n";
  ReplaySettings settings{.policy = PolicyOf("rules: [{ name: all, key: ip, limit: 2/h }]"),
                          .decisions = files.path()};
  settings.logs.files = {files.path("b.csv"), files.path("a.csv")};
  Played(settings, "");
  const std::string b = "{\"file\":\"" + files.path("b.csv") + "\",";
  const std::string a = "{\"file\":\"" + files.path("a.csv") + "\",";
  EXPECT_EQ(
      files.Text(),
      b +
          "\"line\":2,\"allowed\":false,\"rule\":\"all\",\"remaining\":0,\"retry_after_ms\":"
          "1798000}\n" +
          b +
          "\"line\":4,\"allowed\":true,\"rule\":\"all\",\"remaining\":1,\"retry_after_ms\":0}\n" +
          a +
          "\"line\":2,\"allowed\":true,\"rule\":\"all\",\"remaining\":0,\"retry_after_ms\":0}\n");
}

TEST(Replay, CannotWriteDecisionsJustAnywhere) {
  ReplaySettings settings{.policy = PolicyOf("rules: [{ name: all, key: ip, limit: 2/h }]"),
                          .decisions = "/nonexistent/folder/decisions"};
  settings.logs.files = {"-"};
  std::istringstream in("time,ip\n1767323045,1.2.3.4\n");
  const Result<ReplayResult> result = Replay(settings, in);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("/nonexistent/folder/decisions"), std::string::npos);
}

TEST(ReplayReport, SaysFirstWhatIsMissing) {
  const ReplayResult result =
      Played({.policy = PolicyOf("rules: [{ name: all, key: ip, limit: 1/h }]")},
             "time,ip\n1767323045,1.2.3.4\nrubbish\n1767323045,1.2.3.4\n");
  const ReplayShown shown{.policy = "weir.yaml", .horizon = std::chrono::seconds(60)};
  const Report report = ReportOf(result, shown);
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_NE(report.warnings[0].find("were left out"), std::string::npos);
  const std::string text = ReportText(report);
  EXPECT_NE(text.find("ip=1.2.3.4"), std::string::npos);
  EXPECT_NE(text.find("--spread"), std::string::npos);
  const auto json = nlohmann::ordered_json::parse(JsonOf(result, shown));
  EXPECT_EQ(json["requests"], 2);
  EXPECT_EQ(json["denied"], 1);
  EXPECT_EQ(json["left_out"], 1);
  EXPECT_EQ(json["rules"][0]["denied"], 1);
  EXPECT_EQ(json["top"][0]["key"], "ip=1.2.3.4");
}

}  // namespace
}  // namespace weir::lab
