// The files a listener's TLS is made of, which are replaced while it runs.
//
// They are replaced one after the other, so that there are moments when a certificate and a key do
// not belong together. What is in force stays until they do; that they do not is said only once it
// has lasted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/policy_spec.h>
#include <weir/result.h>
#include <weir/time.h>

#include "net/tls_server.h"

namespace weir {

// May be used by one thread at a time, but for the metrics.
class TlsFiles {
 public:
  // `protocol` as clients name it (http/1.1), if they do. Paths are found in `folder`.
  TlsFiles(std::string protocol, std::string folder)
      : protocol_(std::move(protocol)), folder_(std::move(folder)) {}

  using Context = std::shared_ptr<const TlsServerContext>;
  // For the first time.
  Result<Context> Load(const ListenerSpec& spec);

  // What has come of looking at them again.
  struct Looked {
    Context context{};        // If there is a new one.
    std::string complaint{};  // What is wrong with them, if that should be said.
  };
  // `at_once`: who asks wants to know, even if they may be halfway through being replaced.
  Looked Look(const ListenerSpec& spec, SteadyTime now, bool at_once);

  // Where they are.
  std::vector<std::string> Paths(const ListenerSpec& spec) const;

  // --- From any thread. ---
  WallTime expires() const noexcept { return expires_.load(std::memory_order_relaxed); }
  std::uint64_t applied() const noexcept { return applied_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  // How long they may not belong together before that is said.
  static constexpr Duration kGrace = std::chrono::seconds(1);

  struct Contents {
    TlsServerOptions options{};
    std::optional<Error> error{};  // Why they cannot be read, if so.
    std::uint64_t digest = 0;      // Of all that.
  };
  Contents Read(const ListenerSpec& spec) const;
  Result<Context> Make(const Contents& contents);

  const std::string protocol_;  // As clients name it.
  const std::string folder_;
  std::uint64_t in_force_ = 0;             // Digest of the files in use.
  std::optional<std::uint64_t> told_;      // Digest of the files of the last complaint.
  std::optional<SteadyTime> wrong_since_;  // When files were first found wrong after that.
  std::atomic<WallTime> expires_{};
  std::atomic<std::uint64_t> applied_{0};
  std::atomic<std::uint64_t> refused_{0};
};

// What to say of a certificate that has ended or soon will; empty if there is nothing to say.
std::string ExpiryWarning(WallTime expires, WallTime now);

}  // namespace weir
