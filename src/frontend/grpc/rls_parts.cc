#include "frontend/grpc/rls_parts.h"

#include "policy/subject.h"

namespace weir {
namespace {

// Whom an override counts: the descriptor as a whole, in a way that no other is written. It is
// short, however long the descriptor is.
std::string KeyOf(std::string_view domain, std::span<const NamedValue> entries) {
  SubjectWriter key;
  key.Add("envoy", domain);
  for (const NamedValue& entry : entries) key.Add(entry.name, entry.value);
  return std::string(key.Finish());
}

Result<const Limit*> LimitOf(const RlsOverride& limit, LimitCache& limits) {
  if (limit.requests == 0) return limits.Find("deny", "");
  const auto count = static_cast<std::int64_t>(limit.requests);
  return limits.Find(LimitCache::Bucket{
      .capacity = count, .count = count, .seconds = SecondsOf(limit.unit).value_or(1)});
}

}  // namespace

std::optional<Error> RlsParts::Read(std::string_view message, LimitCache& limits) {
  checks_.clear();
  refunds_.clear();
  if (auto error = ReadRlsRequest(message, request_)) return error;
  for (std::size_t i = 0; i < request_.descriptors.size(); ++i) {
    if (auto error = AddPart(i, limits)) return error;
  }
  return std::nullopt;
}

std::optional<Error> RlsParts::AddPart(std::size_t number, LimitCache& limits) {
  const RlsDescriptor& descriptor = request_.descriptors[number];
  const auto entries = request_.EntriesOf(descriptor);
  RequestPart part{.request = {.domain = request_.domain, .descriptors = entries},
                   .cost = request_.CostOf(descriptor)};
  if (descriptor.limit) {
    const Result<const Limit*> limit = LimitOf(*descriptor.limit, limits);
    if (!limit) {
      return Error{ErrorCode::kInvalidArgument,
                   "descriptors[" + std::to_string(number) + "].limit: " + limit.error().message};
    }
    keys_[number] = KeyOf(request_.domain, entries);
    part.limit = *limit;
    part.key = keys_[number];
  }
  (descriptor.is_negative ? refunds_ : checks_).push_back(part);
  return std::nullopt;
}

void RlsParts::Merge(std::span<const RuleDecision> of_checks,
                     std::span<const RuleDecision> of_refunds,
                     std::vector<RuleDecision>& statuses) const {
  statuses.clear();
  std::size_t checks = 0;
  std::size_t refunds = 0;
  for (const RlsDescriptor& descriptor : request_.descriptors) {
    const auto from = descriptor.is_negative ? of_refunds : of_checks;
    std::size_t& next = descriptor.is_negative ? refunds : checks;
    // What was not given back because the rest was denied is let through, and nothing is said of
    // it.
    statuses.push_back(next < from.size() ? from[next]
                                          : RuleDecision{.decision = {.allowed = true}});
    ++next;
  }
}

}  // namespace weir
