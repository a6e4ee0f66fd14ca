// What the rules of a policy ask about a request, and what a log can answer. Rules that ask for
// something no line of a log had cannot be judged by it, which has to be said.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/request.h>

#include "lab/log/line_parser.h"
#include "lab/log/log_reader.h"
#include "policy/attribute.h"

namespace weir::lab {

class AskedAttributes {
 public:
  // All that the rules of these policies match on, count by or take their cost from.
  explicit AskedAttributes(std::span<const PolicySpec* const> policies);

  // The columns of a log that may say something of headers and cookies, for LogSettings::wanted.
  std::vector<std::string> Columns() const;
  bool needs_user_agent() const noexcept { return user_agent_; }

  // So many NamedValues a request needs at most.
  std::size_t named_values() const noexcept { return headers_.size() + others_; }
  // The request of a record whose `wanted` are those of Columns(). `room` is for named_values(),
  // and `texts` for what has to be decoded.
  void MakeRequest(const LogRecord& record, std::span<NamedValue> room, Texts& texts,
                   Request& request);

  // Sentences about what some rule asked for and no request had, or many had not.
  std::vector<std::string> Unanswered() const;

 private:
  struct Asked {
    Attribute attribute{};
    std::vector<std::string> by{};  // Rules, and `allow` and `deny`.
    bool seen = false;
  };
  // A header or cookie, and where its columns stand in `wanted`.
  struct Named {
    std::string name{};
    std::size_t first_column = 0;
    std::size_t columns = 0;
  };

  void Ask(std::string_view attribute, const std::string& by);
  void AskMatch(const Match& match, const std::string& by);
  void AddColumns();
  std::size_t AddNamed(const std::vector<Named>& from, const LogRecord& record,
                       std::span<NamedValue> room) const;
  static bool Has(const Request& request, const Attribute& attribute);

  std::vector<Asked> asked_;
  std::vector<std::uint32_t> unseen_;  // Places in asked_.
  std::vector<std::string> columns_;
  std::vector<Named> headers_;
  std::vector<Named> cookies_;
  std::vector<std::string> queries_;
  bool user_agent_ = false;
  std::size_t others_ = 0;
  // Whether a rule counts whoever asks by address.
  bool counts_addresses_ = false;
  std::uint64_t requests_ = 0;
  std::uint64_t without_address_ = 0;
  std::string first_without_address_;
};

}  // namespace weir::lab
