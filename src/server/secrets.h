// Which values of a request must not be shown, and how they are shown instead: the first two
// characters are enough to recognise one's own.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include <weir/policy_spec.h>
#include <weir/request.h>

namespace weir {

// API keys and where they come from, credentials and cookies, and whatever the policy hashes.
class Secrets {
 public:
  explicit Secrets(const PolicySpec& spec);

  bool IsSecret(std::string_view attribute) const;

  // "ann", or "so…" if it is one; "absent" without quotes.
  std::string Shown(std::string_view attribute, std::string_view value) const;
  // A sentence of an explanation, ATTRIBUTE is VALUE and so on: neither the request's value nor
  // those that the policy compares it with.
  std::string InReason(const std::string& reason, const Request& request) const;
  // A key as it is counted.
  std::string InKey(const std::string& key) const;

 private:
  void Add(std::string_view attribute);

  std::set<std::string, std::less<>> attributes_;
};

}  // namespace weir
