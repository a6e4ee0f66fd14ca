// The service: listeners, threads that serve them, and how they end.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weir/clock.h>
#include <weir/engine.h>

#include "frontend/gate.h"
#include "server/listener.h"
#include "server/log.h"
#include "server/passed_sockets.h"
#include "server/worker.h"

namespace weir {

struct ServiceOptions {
  unsigned threads = 0;  // 0: one for each core that it may run on.
  std::string folder{};  // Where files are that the policy names; empty: where the program runs.
  // Opened by somebody else. Listeners take theirs; one that nobody takes is an error.
  PassedSockets* passed = nullptr;
  // Does all that a start does, and serves nobody. An address that is taken is a warning then: it
  // may be the service's own, which runs already.
  bool only_check = false;
};

// May be used from one thread, but for what ServiceState says.
class Service final : public ServiceState {
 public:
  // Opens the listeners of the policy; http and resp on loopback if it names none. Connections are
  // served from then on. The engine and the log must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<Service>> Start(Engine& engine,
                                                              const PolicySpec& spec,
                                                              const Log& log,
                                                              const ServiceOptions& options = {});
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() override;

  // What a changed policy says about the service, but for where it listens. From any thread.
  void Apply(const PolicySpec& spec);
  void CountReload(bool applied) noexcept;
  // Takes up certificates and tokens that were replaced; see Listener::Refresh. From any thread.
  void RefreshListeners(bool at_once);
  // The files that those are in. From any thread.
  std::vector<std::string> ListenerFiles() const;

  // Takes in nobody any more, answers what was asked, and returns when all connections have ended;
  // they are ended when this takes longer than `deadline`.
  void Drain(Duration deadline);

  // Whether every thread has turned to something new since this was last asked; one that hangs has
  // not. From one thread, whichever.
  bool IsAlive();

  // Where it listens.
  struct Address {
    std::string protocol;  // http
    std::string address;   // 127.0.0.1:8080
  };
  const std::vector<Address>& addresses() const noexcept { return addresses_; }
  std::size_t threads() const noexcept { return workers_.size(); }
  // What a person should know about the listeners.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  // Degraded while the store fails: still of use, so it stays ready.
  Readiness readiness() const noexcept override;
  std::string MetricsText() const override;

 private:
  Service(Engine& engine, const PolicySpec& spec, const Log& log);
  Result<void> OpenAll(const PolicySpec& spec, const ServiceOptions& options);
  Result<void> Open(const std::string& protocol, const ListenerSpec& spec, ManageRight manage,
                    const ServiceOptions& options);
  void ApplyToListeners(const PolicySpec& spec);

  Engine& engine_;
  const Log& log_;
  Gate gate_;
  const std::map<std::string, ListenerSpec> listen_;  // As of the start.
  std::vector<Address> addresses_;                    // Of the entrances,
  std::vector<std::unique_ptr<Listener>> listeners_;  // likewise.
  mutable std::mutex listeners_mutex_;                // Held by whoever reads their files.
  std::vector<std::string> warnings_;
  std::vector<std::unique_ptr<Worker>> workers_;
  const WallTime started_ = SystemClock::Shared().Read().wall;
  std::atomic<Readiness> readiness_{Readiness::kStarting};
  std::atomic<std::uint64_t> reloads_applied_{0};
  std::atomic<std::uint64_t> reloads_refused_{0};
};

}  // namespace weir
