// How the key of a rule is made from a request: as a number to count by, which every request needs,
// and as text for those who must show it or look it up.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "policy/attribute.h"
#include "policy/compiled_match.h"
#include "policy/facts.h"
#include "policy/keyed_hash.h"
#include "policy/subject.h"

namespace weir {

// Immutable; safe to share.
class KeyPlan {
 public:
  struct Source {
    Attribute attribute;
    std::string encoded_name;
    bool hash;
    int ipv4_prefix;
    int ipv6_prefix;
    std::uint64_t seed = 0;  // What stands for its name in hashes; the plan sees to it.

    friend bool operator==(const Source&, const Source&) = default;
  };
  // The alternatives of each part.
  explicit KeyPlan(std::vector<std::vector<Source>> parts);

  // Writes the key; false if some part is absent. `match` is the rule's, for path.NAME.
  bool Write(const Facts& facts, const CompiledMatch& match, const KeyedHash& hash,
             SubjectWriter& writer) const noexcept;

  struct HashedKey {
    std::uint64_t hash;
    bool complete;  // No part is absent.
  };
  // The same for keys whose texts would be the same, whatever plan they are of; and not for others.
  // Of the values themselves, so that no text need be made.
  HashedKey Hash(const Facts& facts, const CompiledMatch& match,
                 const KeyHasher& hasher) const noexcept;

  const std::vector<std::vector<Source>>& parts() const noexcept { return parts_; }
  // Whether two rules with this plan may count different keys for the same request.
  bool DependsOnMatch() const noexcept;

  friend bool operator==(const KeyPlan&, const KeyPlan&) = default;

 private:
  class TextSink;
  class HashSink;
  template <typename Sink>
  class PartReader;
  template <typename Sink>
  bool Read(const Facts& facts, const CompiledMatch& match, Sink& sink) const noexcept;

  std::vector<std::vector<Source>> parts_;
};

}  // namespace weir
