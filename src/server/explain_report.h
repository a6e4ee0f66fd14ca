// An explanation as people and scripts read it, without secrets.
#pragma once

#include <optional>
#include <string>

#include <weir/engine.h>
#include <weir/policy_spec.h>
#include <weir/request.h>

namespace weir {

struct ExplainedRequest {
  const PolicySpec& policy;
  const Request& request;
  // The other end of the connection, if who is asking was found rather than stated.
  std::optional<std::string> peer;
  const Explanation& explanation;
};

std::string ExplanationText(const ExplainedRequest& explained);
std::string ExplanationJson(const ExplainedRequest& explained);

}  // namespace weir
