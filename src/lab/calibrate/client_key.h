// Who counts as one client: the key of the rules that are to be proposed, so that what is learnt is
// counted as they will count it.
//
//   ip             IPv6 by /64, IPv4 that was written as IPv6 as IPv4
//   user, api_key, org, tier, method, host, path (without its query)
//   ip+path        both together
//   account_id     a column of the log: it is read as `user`, which is what the policy then says
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/policy.h>
#include <weir/policy_spec.h>
#include <weir/request.h>
#include <weir/result.h>

#include "base/hash.h"
#include "lab/log/log_reader.h"

namespace weir::lab {

// The request that a line of a log tells of. Refers to what the record refers to.
inline Request RequestOf(const LogRecord& record) noexcept {
  return {.ip = record.ip,
          .user = record.user,
          .api_key = record.api_key,
          .org = record.org,
          .tier = record.tier,
          .method = record.method,
          .path = record.path,
          .host = record.host};
}

// Belongs to one thread.
class ClientKey {
 public:
  using Columns = std::vector<std::pair<std::string, std::string>>;

  // `columns` are those that are read as something already.
  static Result<ClientKey> Parse(std::string_view text, const Columns& columns);

  // None if the line lacks a part of the key.
  std::optional<std::uint64_t> HashOf(const Request& request) const noexcept;
  // For people: 203.0.113.9, or 2001:db8::/64 /search. Of an API key, its first two characters.
  std::string NameOf(const Request& request) const;

  const std::string& text() const noexcept { return text_; }
  const KeySpec& spec() const noexcept { return spec_; }
  // Columns that have to be read as something, because the key asks for them.
  const Columns& columns() const noexcept { return columns_; }
  // What must be there, so that those without it do not share one count.
  const std::vector<std::string>& must_be_present() const noexcept { return must_be_present_; }
  // A part that clients choose freely, so that a rule must say which of its values it counts: path,
  // host, or empty.
  const std::string& chosen_part() const noexcept { return chosen_part_; }
  // The value of that part.
  static std::string ChosenValue(const Request& request, std::string_view part);
  // "per-ip-path"
  const std::string& rule_name() const noexcept { return rule_name_; }

 private:
  ClientKey(std::string text, Policy policy) : text_(std::move(text)), policy_(std::move(policy)) {}

  std::string text_;
  Policy policy_;  // With one rule that counts by this key.
  KeySpec spec_{};
  Columns columns_{};
  std::vector<std::string> must_be_present_{};
  std::string chosen_part_{};
  std::string rule_name_{};
  KeyHasher hasher_{HashKind::kXxh3};
};

}  // namespace weir::lab
