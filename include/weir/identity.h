// Who is asking: makes a Request of an HTTP request as it came in over a socket, by what a policy
// says of proxies, forwarding headers and identity.
//
//   auto identity = weir::Identity::Make(policy.spec(), {.warn = Log});
//   if (!identity) { std::cerr << identity.error().message; return; }
//
//   weir::IdentityStorage storage;  // One for each thread or connection, used again and again.
//   weir::Request request = identity->Identify({.peer = "10.0.0.7",
//                                               .method = "GET",
//                                               .path = "/search?q=weir",
//                                               .host = "example.com",
//                                               .headers = headers},
//                                              storage);
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/request.h>
#include <weir/result.h>

namespace weir {

struct Incoming {
  std::string_view peer{};  // Address of the socket's other end; empty for a unix socket.
  std::string_view method{};
  std::string_view path{};  // With the query, as it was sent.
  std::string_view host{};
  std::span<const NamedValue> headers{};  // In the order in which they came; names in any case.
};

// Holds the text that a Request refers to and that is not part of the incoming one. Used again it
// keeps its memory, so that in the long run nothing is allocated.
class IdentityStorage {
 public:
  IdentityStorage() = default;
  IdentityStorage(const IdentityStorage&) = delete;
  IdentityStorage& operator=(const IdentityStorage&) = delete;

 private:
  friend class RequestIdentifier;

  std::array<char, 46> ip_;
  std::vector<NamedValue> cookies_;
  std::vector<NamedValue> query_;
  std::string decoded_;
};

struct IdentityOptions {
  // Told once in an Identity's life, copies included, when a forwarding header arrives while the
  // policy trusts no proxy: every client behind that proxy is then counted as one. Called from the
  // thread that sees it first.
  std::function<void(std::string_view)> warn{};
};

// Immutable, cheap to copy, safe to share between threads.
class Identity {
 public:
  // Reads trusted_proxies, client_ip and identity. The error says what is wrong with them.
  [[nodiscard]] static Result<Identity> Make(const PolicySpec& spec, IdentityOptions options = {});

  // The Request refers to `incoming`, to `storage` until that is used again, and to this Identity.
  //
  // ip       The client's, in the one way of RFC 5952 to write it. Absent if it cannot be known.
  // user, api_key, org, tier
  //          From where the policy says. Believed only if the peer is trusted, or the policy
  //          believes everybody; else, and if absent, it is the policy's `default`. Nothing is
  //          taken from what occurs twice with different values, be one of them empty: a proxy that
  //          adds its header to the client's rather than writing over it would else let clients be
  //          who they like.
  // headers  All, as they are.
  // cookies, query
  //          Decoded, in their order, repeated ones as often as they occur, so that a lookup finds
  //          the first. Not more than kMostPairs of each, which does not touch the four above.
  // trusted  Whether the peer is. With client_ip.hops everybody is who can connect.
  //
  // A peer that is not empty and no address is not trusted, and there is no ip.
  Request Identify(const Incoming& incoming, IdentityStorage& storage) const;

  // What `trusted` will be: whether this peer is believed.
  bool Trusts(std::string_view peer) const noexcept;

  static constexpr std::size_t kMostPairs = 8'192;

 private:
  friend class RequestIdentifier;
  struct Rules;
  explicit Identity(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)) {}

  std::shared_ptr<const Rules> rules_;
};

}  // namespace weir
