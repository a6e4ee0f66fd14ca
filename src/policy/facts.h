// One request as rules see it: every attribute in the form in which it is compared and counted.
//
// Made once for a request and asked many times; what takes work is done when it is first asked for.
// Refers to the request, and to whatever that refers to.
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
  explicit Facts(const Request& request) noexcept : request_(request) {}
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  const Request& request() const noexcept { return request_; }

  // None if there is no address, or what was given is none.
  const std::optional<IpAddress>& ip() const noexcept;
  std::string_view path() const noexcept;    // As NormalizePath has it.
  std::string_view host() const noexcept;    // In lower case, without a port.
  std::string_view method() const noexcept;  // In upper case.

  // Empty if absent. Not for kIp, kFingerprint and kPathSegment, which are no text of the request.
  std::string_view Get(const Attribute& attribute) const noexcept;
  bool Has(const Attribute& attribute) const noexcept;

 private:
  // Text that had to be changed, kept in place if it is not too long.
  struct Kept {
    bool known = false;
    std::string_view text{};
  };

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
