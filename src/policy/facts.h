// One request as rules see it: every attribute in the form in which it is compared and counted.
//
// Made once for a request and asked many times; what takes work is done when it is first asked for.
// Refers to the request, and to whatever that refers to. One thread at a time.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <weir/request.h>

#include "policy/address.h"
#include "policy/attribute.h"

namespace weir {

class Facts {
 public:
  // Leaves its buffers as they lie: most requests need none of them.
  explicit Facts(const Request& request) noexcept : request_(request) {}  // NOLINT
  explicit Facts(const Request&& request) = delete;                       // It would be gone.
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  const Request& request() const noexcept { return request_; }

  // None if there is no address, or what was given is none.
  const std::optional<IpAddress>& ip() const noexcept {
    if (!ip_known_) FindIp();
    return ip_;
  }
  std::string_view path() const noexcept {  // As NormalizePath has it.
    if (!path_.known) FindPath();
    return path_.text;
  }
  // In lower case, without a port and without the dot that may end a name. An IPv6 address keeps
  // its brackets.
  std::string_view host() const noexcept {
    if (!host_.known) FindHost();
    return host_.text;
  }
  std::string_view method() const noexcept {  // In upper case.
    if (!method_.known) FindMethod();
    return method_.text;
  }

  // Empty if absent; of a name that is there more than once, the first. Not for kIp, kFingerprint
  // and kPathSegment, which are no text of the request.
  std::string_view Get(const Attribute& attribute) const noexcept;
  // There is a fingerprint if there is an address. What a path segment is depends on the rule: no.
  bool Has(const Attribute& attribute) const noexcept;
  // All values of a header, cookie and so on that stand there several times. Elsewhere the first
  // that is not empty counts.
  template <typename Sink>  // void(std::string_view)
  void ForEachValue(const Attribute& attribute, Sink&& sink) const {
    for (const NamedValue& value : ValuesOf(attribute.kind)) {
      const bool same = attribute.kind == AttributeKind::kHeader
                            ? EqualIgnoringCase(value.name, attribute.name)
                            : value.name == attribute.name;
      if (same) sink(value.value);
    }
  }

 private:
  // Text that may have had to be changed, and then is in a buffer, or in a string if it is long.
  struct Kept {
    bool known = false;
    std::string_view text{};
  };

  std::span<const NamedValue> ValuesOf(AttributeKind kind) const noexcept;
  void FindIp() const noexcept;
  void FindPath() const noexcept;
  void FindHost() const noexcept;
  void FindMethod() const noexcept;

  const Request& request_;
  mutable bool ip_known_ = false;
  mutable std::optional<IpAddress> ip_;
  mutable Kept path_, host_, method_;
  mutable std::array<char, 512> path_buffer_;
  mutable std::array<char, 128> host_buffer_;
  mutable std::array<char, 16> method_buffer_;
  mutable std::string long_path_, long_host_, long_method_;
};

}  // namespace weir
