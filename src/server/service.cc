#include "server/service.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <thread>

#include "frontend/http/http_protocol.h"
#include "frontend/resp/resp_protocol.h"
#include "policy/keyed_hash.h"
#include "server/embedded.h"
#include "server/metrics_page.h"

namespace weir {
namespace {

const std::map<std::string, ListenerSpec> kDefaultListeners = {
    {"http", {.address = "127.0.0.1:8080"}}, {"resp", {.address = "127.0.0.1:6380"}}};

constexpr std::size_t kShortToken = 16;

// Those it may run on, which may be fewer than the machine has.
unsigned Cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return std::max(1U, std::thread::hardware_concurrency());
  }
  return static_cast<unsigned>(CPU_COUNT(&allowed));
}

std::unexpected<Error> Failed(const std::string& protocol, const Error& error) {
  return std::unexpected(Error{error.code, "listen: " + protocol + ": " + error.message});
}

Result<std::string> ReadToken(const std::string& source) {
  if (source.empty()) return std::string();
  return ReadSecret(source, 1);
}

// One that was passed, or its own.
Result<ListeningSocket> SocketFor(const std::string& protocol, const Endpoint& endpoint,
                                  PassedSockets* passed) {
  if (passed != nullptr) {
    if (std::optional<ListeningSocket> taken = passed->Take(protocol, endpoint)) {
      return std::move(*taken);
    }
  }
  return ListeningSocket::Open(endpoint);
}

Result<Entrance> EntranceFor(const std::string& protocol, const ListenerSpec& listener) {
  Entrance entrance{.protocol = protocol};
  if (protocol == "http") {
    entrance.make_protocol = MakeHttpProtocol;
    entrance.refusal =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  } else {
    entrance.make_protocol = MakeRespProtocol;
    entrance.refusal = "-ERR max number of clients reached\r\n";
  }
  const Result<std::string> token = ReadToken(listener.token);
  if (!token) return Failed(protocol, token.error());
  const Result<std::string> manage_token = ReadToken(listener.manage_token);
  if (!manage_token) return Failed(protocol, manage_token.error());
  entrance.access = {.token = *token, .manage_token = *manage_token};
  return entrance;
}

}  // namespace

Service::Service(Engine& engine, const PolicySpec& spec) : engine_(engine), gate_(spec.limits) {}

Service::~Service() = default;

Result<std::unique_ptr<Service>> Service::Start(Engine& engine, const PolicySpec& spec,
                                                const ServiceOptions& options) {
  std::unique_ptr<Service> service(new Service(engine, spec));
  const auto settings = Settings::Of(spec);
  for (unsigned i = 0; i < (options.threads == 0 ? Cores() : options.threads); ++i) {
    service->workers_.push_back(std::make_unique<Worker>(engine, SystemClock::Shared(),
                                                         service->gate_, *service, settings));
  }
  const Result<void> opened = service->OpenAll(spec, options);
  if (!opened) return std::unexpected(opened.error());
  if (!spec.memory.snapshot.empty()) {
    service->warnings_.emplace_back("memory: snapshot comes in a later version; nothing is kept");
  }
  if (options.only_check) return service;
  for (const auto& worker : service->workers_) worker->Start();
  service->readiness_.store(Readiness::kReady, std::memory_order_relaxed);
  return service;
}

// All of them, so that all that is wrong is told at once.
Result<void> Service::OpenAll(const PolicySpec& spec, const ServiceOptions& options) {
  std::string wrong;
  for (const auto& [protocol, listener] : spec.listen.empty() ? kDefaultListeners : spec.listen) {
    if (protocol == "grpc") {
      warnings_.push_back("listen: grpc " + listener.address +
                          ": checked, not opened: gRPC comes in a later version");
      continue;
    }
    const Result<void> opened = Open(protocol, listener, spec.manage, options.passed);
    if (opened) continue;
    if (options.only_check && opened.error().code == ErrorCode::kConflict) {
      warnings_.push_back(opened.error().message + "; all is well if that is this service");
      continue;
    }
    wrong += (wrong.empty() ? "" : "\n") + opened.error().message;
  }
  // Else the listener that would have taken one may be what is wrong.
  if (wrong.empty() && options.passed != nullptr) {
    for (const std::string& left : options.passed->left()) {
      if (!wrong.empty()) wrong += '\n';
      wrong +=
          "listen: the socket " + left + " was passed, but no listener has its name or address";
    }
  }
  if (wrong.empty()) return {};
  return std::unexpected(Error{ErrorCode::kInvalidArgument, wrong});
}

Result<void> Service::Open(const std::string& protocol, const ListenerSpec& listener,
                           ManageRight manage, PassedSockets* passed) {
  if (!listener.tls_certificate.empty()) {
    // Never in the clear what was meant to be hidden.
    return std::unexpected(Error{ErrorCode::kInvalidArgument,
                                 "listen: " + protocol +
                                     ": tls comes in a later version; "
                                     "remove it, or put a proxy that does TLS before it"});
  }
  const Result<Endpoint> endpoint = Endpoint::Parse(listener.address);
  if (!endpoint) return Failed(protocol, endpoint.error());
  Result<Entrance> entrance = EntranceFor(protocol, listener);
  if (!entrance) return std::unexpected(entrance.error());
  Result<ListeningSocket> socket = SocketFor(protocol, *endpoint, passed);
  if (!socket) return Failed(protocol, socket.error());

  Access& access = entrance->access;
  const std::string address = socket->endpoint().ToString();
  access.manage_open = manage == ManageRight::kOpen && socket->is_loopback();
  if (!socket->is_loopback() && access.token.empty()) {
    warnings_.push_back(address + ": everybody who reaches it may use it; set a token");
  }
  if (manage == ManageRight::kOpen && !access.manage_open) {
    warnings_.push_back(address + ": manage: open is for loopback and unix sockets only");
  }
  if (!access.token.empty() && access.token == access.manage_token) {
    warnings_.push_back(address + ": token and manage_token are the same; whoever has one manages");
  }
  if (!access.token.empty() && access.token.size() < kShortToken) {
    warnings_.push_back(address + ": the token is short; 16 characters and more are hard to guess");
  }
  addresses_.push_back({.protocol = protocol, .address = address});
  for (std::size_t i = 1; i < workers_.size(); ++i) {
    Result<ListeningSocket> another = socket->Another();
    if (!another) return Failed(protocol, another.error());
    workers_[i]->Add(*entrance, std::move(*another));
  }
  workers_[0]->Add(*entrance, std::move(*socket));
  return {};
}

void Service::Apply(const PolicySpec& spec) {
  gate_.SetLimits(spec.limits);
  engine_.SetMaxWaiters(static_cast<std::size_t>(spec.limits.waiters));
  const auto settings = Settings::Of(spec);
  for (const auto& worker : workers_) worker->Apply(settings);
}

bool Service::IsAlive() {
  bool all = true;
  // Each is asked, whatever the others said: it answers for the time since it was asked last.
  for (const auto& worker : workers_) all = worker->IsAlive() && all;
  return all;
}

void Service::CountReload(bool applied) noexcept {
  (applied ? reloads_applied_ : reloads_refused_).fetch_add(1, std::memory_order_relaxed);
}

void Service::Drain(Duration deadline) {
  readiness_.store(Readiness::kDraining, std::memory_order_relaxed);
  for (const auto& worker : workers_) worker->Drain(deadline);
  for (const auto& worker : workers_) worker->Join();
}

ServiceState::Readiness Service::readiness() const noexcept {
  const Readiness readiness = readiness_.load(std::memory_order_relaxed);
  if (readiness != Readiness::kReady || !engine_.Health().degraded) return readiness;
  return Readiness::kDegraded;
}

std::string Service::MetricsText() const {
  MetricsSnapshot snapshot{
      .version = ProgramVersion(),
      .engine = engine_.Stats(),
      .store = engine_.Health(),
      .rules = engine_.RuleCounts(),
      .reloads_applied = reloads_applied_.load(std::memory_order_relaxed),
      .reloads_refused = reloads_refused_.load(std::memory_order_relaxed),
      .buffered_bytes = gate_.buffered(),
      .ready = readiness_.load(std::memory_order_relaxed) == Readiness::kReady};
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    MetricsSnapshot::Listener listener{.protocol = addresses_[i].protocol};
    for (const auto& worker : workers_) listener.threads.push_back(&worker->metrics(i));
    snapshot.listeners.push_back(std::move(listener));
  }
  return MetricsPage(snapshot);
}

}  // namespace weir
