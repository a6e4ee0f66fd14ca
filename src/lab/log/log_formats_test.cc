// threads
// Lines as programs really write them, in every format.
#include "lab/log/log_samples.h"

namespace weir::lab {
namespace {

const KeptRecord& Only(const WholeLog& log) {
  static const KeptRecord kNothing;
  EXPECT_EQ(log.error, "");
  EXPECT_EQ(log.requests.size(), 1U);
  return log.requests.empty() ? kNothing : log.requests[0];
}

TEST(CombinedFormat, IsReadAsNginxWritesIt) {
  const WholeLog log = ReadText(
      "203.0.113.9 - ann [10/Oct/2025:13:55:36 +0200] \"POST /auth/login?next=%2F HTTP/1.1\" 401 "
      "512 "
      "\"https://shop.example/\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n");
  const KeptRecord& request = Only(log);
  EXPECT_EQ(log.counts[0].format, "combined");
  EXPECT_EQ(request.time, At(1'760'097'336));
  EXPECT_EQ(request.ip, "203.0.113.9");
  EXPECT_EQ(request.user, "ann");
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/auth/login?next=%2F");
  EXPECT_EQ(request.status, 401);
  EXPECT_EQ(request.user_agent, "Mozilla/5.0 (X11; Linux x86_64)");
  EXPECT_EQ(request.line, 1U);
  EXPECT_TRUE(log.counts[0].whole_seconds);
}

TEST(CombinedFormat, IsReadWithoutRefererToo) {
  const WholeLog log =
      ReadText("2001:db8::7 - - [29/Feb/2024:00:00:00 +0000] \"GET / HTTP/1.0\" 200 -");
  EXPECT_EQ(Only(log).ip, "2001:db8::7");
  EXPECT_EQ(Only(log).user, "");
  EXPECT_EQ(Only(log).time, At(1'709'164'800));
}

TEST(CombinedFormat, MayHaveTheHostInFrontAndMoreBehind) {
  const WholeLog log = ReadText(
      "shop.example:443 198.51.100.4 - - [01/Jan/2026:00:00:00 +0000] \"GET /a b HTTP/2.0\" 200 1 "
      "\"-\" \"-\" 0.003 \"upstream\"\n");
  EXPECT_EQ(Only(log).host, "shop.example:443");
  EXPECT_EQ(Only(log).ip, "198.51.100.4");
  EXPECT_EQ(Only(log).path, "/a b");
  EXPECT_EQ(Only(log).user_agent, "");
}

TEST(CombinedFormat, ReadsTimesThatAreFinerThanASecond) {
  const WholeLog log = ReadText(
      "192.0.2.1 - - [1760097336.125] \"GET / HTTP/1.1\" 200 1\n"
      "192.0.2.1 - - [2025-10-10T13:55:36.250+02:00] \"GET / HTTP/1.1\" 200 1\n");
  ASSERT_EQ(log.requests.size(), 2U);
  EXPECT_EQ(log.requests[0].time, At(1'760'097'336, 125'000'000));
  EXPECT_EQ(log.requests[1].time, At(1'760'097'336, 250'000'000));
  EXPECT_FALSE(log.counts[0].whole_seconds);
}

TEST(CombinedFormat, TakesWhatIsNoRequestForOneFromSomebodyAtSomeTime) {
  const WholeLog log = ReadText(
      "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"\\x16\\x03\\x01\\x02\" 400 157 \"-\" \"-\"\n"
      "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"-\" 408 0 \"-\" \"-\"\n"
      "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"\" 400 0 \"-\" \"-\"\n");
  ASSERT_EQ(log.requests.size(), 3U);
  for (const KeptRecord& request : log.requests) {
    EXPECT_EQ(request.ip, "192.0.2.1");
    EXPECT_EQ(request.method + request.path, "");
  }
  EXPECT_EQ(log.counts[0].left_out(), 0U);
}

TEST(CombinedFormat, UndoesTheEscapesOfBothServers) {
  const WholeLog log = ReadText(
      "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"GET /a\\x22b HTTP/1.1\" 200 1 \"-\" "
      "\"x\\\"y\"\n"
      "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"GET /a\\\"b\\\\ HTTP/1.1\" 200 1 \"-\" "
      "\"z\\\\\"\n");
  ASSERT_EQ(log.requests.size(), 2U);
  EXPECT_EQ(log.requests[0].path, "/a\"b");
  EXPECT_EQ(log.requests[0].user_agent, "x\"y");
  EXPECT_EQ(log.requests[1].path, "/a\"b\\");
  EXPECT_EQ(log.requests[1].user_agent, "z\\");
}

TEST(CombinedFormat, IsNotMisledByBracketsInWhatClientsChoose) {
  const WholeLog log = ReadText(
      "203.0.113.9 - us[er [10/Oct/2025:13:55:36 +0200] \"GET / HTTP/1.1\" 200 5\n"
      "203.0.113.9 - [ [x] [10/Oct/2025:13:55:36 +0200] \"GET / HTTP/1.1\" 200 5\n"
      "[2001:db8::1] - - [10/Oct/2025:13:55:36 +0200] \"GET / HTTP/1.1\" 200 5\n"
      "203.0.113.9 - [[[[[[[[[[[[[[[[[ [10/Oct/2025:13:55:36 +0200] \"GET / HTTP/1.1\" 200 5\n");
  ASSERT_EQ(log.requests.size(), 3U);
  EXPECT_EQ(log.requests[0].user, "us[er");
  EXPECT_EQ(log.requests[1].user, "[ [x]");
  EXPECT_EQ(log.requests[2].ip, "2001:db8::1");
  EXPECT_EQ(log.counts[0].unparsed, 1U);
}

TEST(CombinedFormat, HasColumnsThatCanBeAskedFor) {
  LogSettings settings;
  settings.wanted = {"referer", "nothing", "bytes"};
  settings.columns = {{"org", "ident"}};
  const WholeLog log = ReadText(
      "192.0.2.1 shop - [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 77 \"http://r/\" "
      "\"u\"\n",
      settings);
  EXPECT_EQ(Only(log).wanted, (std::vector<std::string>{"http://r/", "", "77"}));
  EXPECT_EQ(Only(log).org, "shop");
}

TEST(CombinedFormat, HasNoTimeWhereThereAreZeros) {
  const std::string line = "192.0.2.1 - - [02/Jan/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n";
  const WholeLog log =
      ReadText("192.0.2.1 - - [" + std::string(26, '\0') + "] \"GET / HTTP/1.1\" 200 1\n" + line);
  EXPECT_EQ(Only(log).line, 2U);
  EXPECT_EQ(log.counts[0].unparsed, 1U);
}

TEST(CombinedFormat, PassesOverRemarksWhateverIsInThem) {
  const std::string line = "192.0.2.1 - - [02/Jan/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n";
  const WholeLog log = ReadText("# rotated by me [weekly]\n  # too\n" + line);
  EXPECT_EQ(Only(log).line, 3U);
  EXPECT_EQ(log.counts[0].blank, 2U);
}

TEST(AlbFormat, IsReadAsTheLoadBalancerWritesIt) {
  const WholeLog log = ReadText(
      "https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 "
      "10.0.0.1:80 0.086 0.048 0.037 200 201 0 57 \"GET https://www.example.com:443/a?b=c "
      "HTTP/1.1\" "
      "\"curl/7.46.0\" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 "
      "arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "
      "\"Root=1-58337281-1d84f3d73c47ec4e58577259\" \"www.example.com\" \"arn:aws:acm:x\" 1 "
      "2018-07-02T22:22:48.364000Z \"authenticate,forward\" \"-\" \"-\" \"10.0.0.1:80\" \"200\" "
      "\"-\" "
      "\"-\" TID_123456\n");
  const KeptRecord& request = Only(log);
  EXPECT_EQ(log.counts[0].format, "alb");
  EXPECT_EQ(request.time, At(1'530'570'180, 186'641'000));
  EXPECT_EQ(request.ip, "192.168.131.39");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/a?b=c");
  EXPECT_EQ(request.host, "www.example.com");
  EXPECT_EQ(request.status, 200);
  EXPECT_EQ(request.user_agent, "curl/7.46.0");
}

TEST(AlbFormat, CanGoByAnotherOfItsTimes) {
  LogSettings settings;
  settings.columns = {{"time", "request_creation_time"}};
  const WholeLog log = ReadText(
      "h2 2018-07-02T22:23:00.186641Z app/x/1 [2001:db8::1]:2817 - -1 -1 -1 502 - 0 57 "
      "\"- http://x:80- -\" \"a \\\"b\\\"\" - - - \"-\" \"-\" \"-\" 1 "
      "2018-07-02T22:22:48.364000Z\n",
      settings);
  EXPECT_EQ(Only(log).time, At(1'530'570'168, 364'000'000));
  EXPECT_EQ(Only(log).ip, "2001:db8::1");
  EXPECT_EQ(Only(log).user_agent, "a \"b\"");
  EXPECT_EQ(Only(log).method, "");
}

TEST(EnvoyFormat, IsReadAsEnvoyAndIstioWriteIt) {
  const WholeLog log = ReadText(
      R"({"start_time":"2025-04-15T20:17:00.310Z","method":"GET","path":"/api?x=1","protocol":"HTTP/1.1",)"
      R"("response_code":200,"response_flags":"-","bytes_received":0,"bytes_sent":154,"duration":226,)"
      R"("upstream_service_time":"100","x_forwarded_for":"198.51.100.1, 10.0.35.28",)"
      R"("user_agent":"nsq2http","request_id":"cc21","authority":"locations","upstream_host":"1.2.3.4:80"})"
      "\n"
      R"({"start_time":"2025-04-15T20:17:01.310Z","method":null,"path":null,"response_code":0,)"
      R"("downstream_remote_address":"203.0.113.5:51000","x_forwarded_for":null,"authority":null})"
      "\n");
  ASSERT_EQ(log.error, "");
  ASSERT_EQ(log.requests.size(), 2U);
  EXPECT_EQ(log.counts[0].format, "envoy");
  EXPECT_EQ(log.requests[0].time, At(1'744'748'220, 310'000'000));
  EXPECT_EQ(log.requests[0].ip, "10.0.35.28");
  EXPECT_EQ(log.requests[0].path, "/api?x=1");
  EXPECT_EQ(log.requests[0].host, "locations");
  EXPECT_EQ(log.requests[0].status, 200);
  EXPECT_EQ(log.requests[0].user_agent, "nsq2http");
  EXPECT_EQ(log.requests[1].ip, "203.0.113.5");
  EXPECT_EQ(log.requests[1].path, "");
}

TEST(CaddyFormat, IsReadAsCaddyWritesIt) {
  const WholeLog log = ReadText(
      R"({"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request",)"
      R"("request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"203.0.113.8",)"
      R"("proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/p?q=1",)"
      R"("headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false}},)"
      R"("bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,)"
      R"("resp_headers":{"Server":["Caddy"]}})"
      "\n");
  const KeptRecord& request = Only(log);
  EXPECT_EQ(log.counts[0].format, "caddy");
  EXPECT_EQ(request.time, At(1'646'861'401, 524'102'400));
  EXPECT_EQ(request.ip, "203.0.113.8");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/p?q=1");
  EXPECT_EQ(request.host, "localhost");
  EXPECT_EQ(request.user_agent, "curl/7.82.0");
  EXPECT_EQ(request.user, "");
}

// They are in the same file unless somebody configures otherwise.
TEST(CaddyFormat, DoesNotCountWhatTheServerSaysOfItself) {
  const WholeLog log = ReadText(
      R"({"level":"info","ts":1760097330.1,"logger":"admin","msg":"admin endpoint started"})"
      "\n"
      R"({"level":"info","ts":1760097331.2,"msg":"serving initial configuration"})"
      "\n"
      R"({"level":"info","ts":1760097336.5,"logger":"http.log.access","msg":"handled request",)"
      R"("request":{"remote_ip":"192.0.2.1","method":"GET","uri":"/a"},"status":502})"
      "\n"
      R"({"level":"error","ts":1760097336.5,"logger":"http.log.error","msg":"dial tcp: refused",)"
      R"("request":{"remote_ip":"192.0.2.1","method":"GET","uri":"/a"},"status":502})"
      "\n");
  EXPECT_EQ(log.counts[0].format, "caddy");
  EXPECT_EQ(Only(log).ip, "192.0.2.1");
  EXPECT_EQ(Only(log).line, 3U);
  EXPECT_EQ(log.counts[0].blank, 2U);
  EXPECT_EQ(log.counts[0].unparsed, 1U);
}

TEST(CsvFormat, IsReadByItsHeading) {
  const WholeLog log = ReadText(
      "\xef\xbb\xbf"
      "Timestamp,client_ip,user_id,api_key,method,url,status,cost,User_Agent\r\n"
      "2026-01-02 "
      "03:04:05.5,203.0.113.9,ann,k1,GET,\"https://x.example/a,b?q=\"\"1\"\"\",200,3,\"u,v\"\r\n"
      "\r\n"
      "# a remark\r\n"
      "1767323046000,203.0.113.9,-,,,/plain,,,\r\n");
  ASSERT_EQ(log.error, "");
  ASSERT_EQ(log.requests.size(), 2U);
  EXPECT_EQ(log.counts[0].format, "csv");
  EXPECT_EQ(log.requests[0].time, At(1'767'323'045, 500'000'000));
  EXPECT_EQ(log.requests[0].user, "ann");
  EXPECT_EQ(log.requests[0].api_key, "k1");
  EXPECT_EQ(log.requests[0].path, "/a,b?q=\"1\"");
  EXPECT_EQ(log.requests[0].host, "x.example");
  EXPECT_EQ(log.requests[0].cost, 3);
  EXPECT_EQ(log.requests[0].user_agent, "u,v");
  EXPECT_EQ(log.requests[1].time, At(1'767'323'046));
  EXPECT_EQ(log.requests[1].user, "");
  EXPECT_EQ(log.requests[1].cost, 1);
  EXPECT_EQ(log.requests[1].line, 5U);
  EXPECT_EQ(log.counts[0].lines, 5U);
  EXPECT_EQ(log.counts[0].blank, 3U);
}

TEST(CsvFormat, MayHaveBlanksAroundValues) {
  const WholeLog log = ReadText(
      "time, ip, user, path \n1767323046, 1.2.3.4 , \"a, b\" , /x\n1767323046, 1.2.3.4, , \n");
  ASSERT_EQ(log.requests.size(), 2U);
  EXPECT_EQ(log.requests[0].ip, "1.2.3.4");
  EXPECT_EQ(log.requests[0].user, "a, b");
  EXPECT_EQ(log.requests[0].path, "/x");
  EXPECT_EQ(log.requests[1].user, "");
  EXPECT_EQ(log.requests[1].path, "");
}

TEST(CsvFormat, HasColumnsForHeadersByAnyName) {
  LogSettings settings;
  settings.columns = {{"header.x-tenant", "Who"}};
  settings.wanted = {"header.x-tenant", "x-client"};
  const WholeLog log = ReadText("ts,Who,X-Client\n1767323046,acme,app\n", settings);
  EXPECT_EQ(Only(log).wanted, (std::vector<std::string>{"acme", "app"}));
}

TEST(CsvFormat, CountsRowsThatAreNotOfTheHeading) {
  const WholeLog log = ReadText(
      "time,ip\n1767323046,1.2.3.4\n1767323046,1.2.3.4,5\nnever,1.2.3.4\n1767323046,\"1.2\n");
  EXPECT_EQ(log.requests.size(), 1U);
  EXPECT_EQ(log.counts[0].unparsed, 3U);
  ASSERT_EQ(log.counts[0].examples.size(), 3U);
  EXPECT_EQ(log.counts[0].examples[0].line, 3U);
  EXPECT_EQ(log.counts[0].examples[1].why, "the time cannot be read");
}

TEST(CsvFormat, MayHaveTabsOrSemicolons) {
  EXPECT_EQ(Only(ReadText("ts\tip\n1767323046\t1.2.3.4\n")).ip, "1.2.3.4");
  EXPECT_EQ(Only(ReadText("ts;ip\n1767323046;1.2.3.4\n")).ip, "1.2.3.4");
}

TEST(JsonLines, AreReadByTheUsualNames) {
  const WholeLog log = ReadText(
      R"({"@timestamp":"2026-01-02T03:04:05Z","remote_addr":"203.0.113.9","request":"PUT /a HTTP/1.1",)"
      R"("org":"acme","tier":"pro","status":"201","user":"J\u00fcrgen \"x\"","big":{"a":[1,{"b":2}]}})"
      "\n");
  const KeptRecord& request = Only(log);
  EXPECT_EQ(log.counts[0].format, "jsonl");
  EXPECT_EQ(request.time, At(1'767'323'045));
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.path, "/a");
  EXPECT_EQ(request.org, "acme");
  EXPECT_EQ(request.tier, "pro");
  EXPECT_EQ(request.status, 201);
  EXPECT_EQ(request.user, "J\xc3\xbcrgen \"x\"");
}

TEST(JsonLines, AreReadByNamesThatAreGiven) {
  LogSettings settings;
  settings.columns = {{"time", "when.at"}, {"user", "who.accounts.1"}, {"ip", "a.b"}};
  settings.wanted = {"who.name", "n", "missing"};
  const WholeLog log = ReadText(
      R"({"when":{"at":1767323045123},"who":{"accounts":["x","y"],"name":"ann"},"a.b":"1.2.3.4","n":7})"
      "\n",
      settings);
  const KeptRecord& request = Only(log);
  EXPECT_EQ(request.time, At(1'767'323'045, 123'000'000));
  EXPECT_EQ(request.user, "y");
  EXPECT_EQ(request.ip, "1.2.3.4");
  EXPECT_EQ(request.wanted, (std::vector<std::string>{"ann", "7", ""}));
}

TEST(JsonLines, AreNotCountedWithAnotherCostThanTheySay) {
  const std::string begins = R"({"time":1760097336,"cost":)";
  std::string text;
  for (const char* const cost : {"7", "1e3", "2.5", "\"3x\"", "-1", "99999999999999999999"}) {
    text += begins + cost + "}\n";
  }
  const WholeLog log = ReadText(text);
  EXPECT_EQ(Only(log).cost, 7);
  EXPECT_EQ(log.counts[0].unparsed, 5U);
}

TEST(JsonLines, WithWordsThatAreNoneOfJsonAreCounted) {
  std::string text = "{\"time\":1767323045,\"status\":null}\n";
  for (const char* const word : {"nan", "nil", "nope", "nul", "null1", "nulll", "tru", "fals"}) {
    for (const char* const name : {"status", "ip", "unused"}) {
      text += R"({"time":1767323045,")" + std::string(name) + "\":" + word + "}\n";
    }
    text += R"({"time":1767323045,"ip":[)" + std::string(word) + "]}\n";
  }
  const WholeLog log = ReadText(text);
  EXPECT_EQ(log.requests.size(), 1U);
  EXPECT_EQ(log.counts[0].unparsed, 32U);
}

TEST(JsonLines, ThatAreNotWholeAreCounted) {
  const WholeLog log = ReadText(
      "{\"time\":1767323045,\"ip\":\"1.2.3.4\"}\n"
      "{\"time\":1767323045,\"ip\":\"1.2.3.4\"\n"
      "{\"time\":1767323045} {\"time\":1767323045}\n"
      "{\"time\":1767323045,\"ip\":\"\xff\xfe\"}\n"
      "[1]\n"
      "{\"ip\":\"1.2.3.4\"}\n");
  EXPECT_EQ(log.requests.size(), 1U);
  EXPECT_EQ(log.counts[0].unparsed, 5U);
  EXPECT_EQ(log.counts[0].examples.back().why, "no time");
}

}  // namespace
}  // namespace weir::lab
