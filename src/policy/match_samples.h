// Matches for tests: words to write them by hand, and random ones with random requests, from so few
// names and values that many of them meet.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/request.h>

#include "policy/compiled_match.h"

namespace weir {

inline Match All(std::vector<Match> parts) {
  Match match;
  match.all = std::move(parts);
  return match;
}
inline Match Any(std::vector<Match> parts) {
  Match match;
  match.any = std::move(parts);
  return match;
}
inline Match None(std::vector<Match> parts) {
  Match match;
  match.none = std::move(parts);
  return match;
}

class MatchSampler {
 public:
  explicit MatchSampler(std::uint64_t seed) : random_(seed) {}

  std::size_t Below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  Match NextMatch(int depth = 2) {
    Match match;
    for (std::size_t i = Below(3); i > 0; --i) match.attributes.push_back(NextTest());
    if (depth == 0) return match;
    for (std::vector<Match>* parts : {&match.all, &match.any, &match.none}) {
      if (Below(4) != 0) continue;
      for (std::size_t i = Below(3) + 1; i > 0; --i) parts->push_back(NextMatch(depth - 1));
    }
    return match;
  }

  CompiledMatch NextCompiled(int depth = 2) { return *CompiledMatch::Make(NextMatch(depth)); }

  // Refers to itself and to what is there for good.
  struct Sample {
    std::vector<NamedValue> headers, cookies, query, descriptors;
    Request request;
  };
  Sample NextRequest() {
    Sample sample;
    Request& request = sample.request;
    request.ip = OneOf({"", "10.1.2.3", "10.1.9.9", "192.0.2.1", "2001:db8::1", "junk"});
    request.user = OneOf({"", "ann", "bob"});
    request.tier = OneOf({"", "free", "pro"});
    request.method = OneOf({"", "GET", "get", "POST", "Put"});
    request.path =
        OneOf({"", "/", "/a", "/a/b", "/a//b/", "/a/b/c", "/b/%61", "/b/./b?x", "/c/a/b"});
    request.host = OneOf({"", "a.org", "A.org:80", "x.a.org", "b.org."});
    request.domain = OneOf({"", "edge"});
    for (std::vector<NamedValue>* values :
         {&sample.headers, &sample.cookies, &sample.query, &sample.descriptors}) {
      for (std::size_t i = Below(4); i > 0; --i) {
        values->push_back({OneOf({"x-a", "X-A", "x-b", "accept"}), OneOf({"", "1", "2", "12"})});
      }
    }
    request.headers = sample.headers;
    request.cookies = sample.cookies;
    request.query = sample.query;
    request.descriptors = sample.descriptors;
    return sample;
  }

 private:
  std::string_view OneOf(std::initializer_list<std::string_view> values) {
    return values.begin()[Below(values.size())];
  }

  AttributeTest NextTest() {
    using Wants = AttributeTest::Wants;
    AttributeTest test;
    test.attribute =
        OneOf({"ip", "user", "tier", "method", "path", "path", "host", "domain", "header.x-a",
               "header.X-B", "cookie.x-a", "cookie.X-A", "query.x-a", "descriptor.x-b"});
    test.negated = Below(5) == 0;
    test.wants = Below(4) != 0 ? Wants::kValue : Below(3) != 0 ? Wants::kPresent : Wants::kAbsent;
    if (test.wants != Wants::kValue) return test;
    for (std::size_t i = Below(3) + 1; i > 0; --i) {
      test.any_of.emplace_back(ValueOf(test.attribute));
    }
    return test;
  }

  std::string_view ValueOf(std::string_view attribute) {
    if (attribute == "ip") {
      return OneOf({"10.0.0.0/8", "10.1.2.0/24", "10.1.2.3", "2001:db8::/32", "0.0.0.0/0"});
    }
    if (attribute == "user") return OneOf({"ann", "bob", "a*", "*"});
    if (attribute == "tier") return OneOf({"free", "pro"});
    if (attribute == "method") return OneOf({"GET", "post", "PUT", "P*"});
    if (attribute == "path") {
      return OneOf({"/", "/a", "/a/b", "/b/a/", "/*", "/*/b", "/a/*", "/{x}/b", "/a*/b", "/**",
                    "/a/**", "/**/b", "/a/**/c", "/*/**/b", "/b/**/*"});
    }
    if (attribute == "host") return OneOf({"a.org", "B.org", "*.a.org", "x.a.org"});
    if (attribute == "domain") return OneOf({"edge", "e*"});
    return OneOf({"1", "2", "12", "1*", "*2"});
  }

  std::mt19937_64 random_;
};

}  // namespace weir
