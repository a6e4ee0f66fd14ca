#include "server/service.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <thread>

#include "frontend/grpc/grpc_protocol.h"
#include "frontend/http/http_protocol.h"
#include "frontend/resp/resp_protocol.h"
#include "server/embedded.h"
#include "server/metrics_page.h"

namespace weir {
namespace {

// The listeners that the policy names, or those of a policy that names none.
std::map<std::string, ListenerSpec> ListenersOf(const PolicySpec& spec) {
  if (!spec.listen.empty()) return spec.listen;
  return {{"http", {.address = "127.0.0.1:8080"}}, {"resp", {.address = "127.0.0.1:6380"}}};
}

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

Entrance EntranceFor(const std::string& protocol) {
  Entrance entrance{.protocol = protocol};
  if (protocol == "http") {
    entrance.make_protocol = MakeHttpProtocol;
    entrance.refusal =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  } else if (protocol == "grpc") {
    entrance.make_protocol = MakeGrpcProtocol;  // Who is closed on without a word tries elsewhere.
  } else {
    entrance.make_protocol = MakeRespProtocol;
    entrance.refusal = "-ERR max number of clients reached\r\n";
  }
  return entrance;
}

// What takes a new start to change, of each listener.
std::map<std::string, std::pair<std::string, bool>> Fixed(
    const std::map<std::string, ListenerSpec>& listen) {
  std::map<std::string, std::pair<std::string, bool>> fixed;
  for (const auto& [protocol, spec] : listen) {
    fixed[protocol] = {spec.address, !spec.tls_certificate.empty()};
  }
  return fixed;
}

}  // namespace

Service::Service(Engine& engine, const PolicySpec& spec, const Log& log)
    : engine_(engine), log_(log), gate_(spec.limits), listen_(ListenersOf(spec)) {}

Service::~Service() = default;

Result<std::unique_ptr<Service>> Service::Start(Engine& engine, const PolicySpec& spec,
                                                const Log& log, const ServiceOptions& options) {
  std::unique_ptr<Service> service(new Service(engine, spec, log));
  const auto settings = Settings::Of(spec, engine.identity());
  for (unsigned i = 0; i < (options.threads == 0 ? Cores() : options.threads); ++i) {
    service->workers_.push_back(std::make_unique<Worker>(engine, SystemClock::Shared(),
                                                         service->gate_, *service, settings));
  }
  const Result<void> opened = service->OpenAll(spec, options);
  if (!opened) return std::unexpected(opened.error());
  if (options.only_check) return service;
  for (const auto& worker : service->workers_) worker->Start();
  service->readiness_.store(Readiness::kReady, std::memory_order_relaxed);
  return service;
}

// All of them, so that all that is wrong is told at once.
Result<void> Service::OpenAll(const PolicySpec& spec, const ServiceOptions& options) {
  std::string wrong;
  for (const auto& [protocol, listener] : listen_) {
    const Result<void> opened = Open(protocol, listener, spec.manage, options);
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

Result<void> Service::Open(const std::string& protocol, const ListenerSpec& spec,
                           ManageRight manage, const ServiceOptions& options) {
  const Result<Endpoint> endpoint = Endpoint::Parse(spec.address);
  if (!endpoint) return Failed(protocol, endpoint.error());
  Listener& listener =
      *listeners_.emplace_back(std::make_unique<Listener>(protocol, options.folder, log_));
  if (const Result<void> begun = listener.Begin(spec, manage); !begun) {
    return Failed(protocol, begun.error());
  }
  Result<ListeningSocket> socket = SocketFor(protocol, *endpoint, options.passed);
  if (!socket) return Failed(protocol, socket.error());

  const std::string address = socket->endpoint().ToString();
  Entrance entrance = EntranceFor(protocol);
  entrance.credentials =
      listener.Settle({.address = address, .is_loopback = socket->is_loopback()});
  entrance.handshake_log = &listener.handshake_log();
  for (std::string& warning : listener.Warnings(SystemClock::Shared().Read().wall)) {
    warnings_.push_back(std::move(warning));
  }
  addresses_.push_back({.protocol = protocol, .address = address});
  for (std::size_t i = 1; i < workers_.size(); ++i) {
    Result<ListeningSocket> another = socket->Another();
    if (!another) return Failed(protocol, another.error());
    workers_[i]->Add(entrance, std::move(*another));
  }
  workers_[0]->Add(entrance, std::move(*socket));
  return {};
}

void Service::Apply(const PolicySpec& spec) {
  gate_.SetLimits(spec.limits);
  engine_.SetMaxWaiters(static_cast<std::size_t>(spec.limits.waiters));
  const auto settings = Settings::Of(spec, engine_.identity());
  for (const auto& worker : workers_) worker->Apply(settings);
  ApplyToListeners(spec);
}

void Service::ApplyToListeners(const PolicySpec& spec) {
  const std::map<std::string, ListenerSpec> listen = ListenersOf(spec);
  {
    const std::scoped_lock lock(listeners_mutex_);
    for (const auto& listener : listeners_) {
      const auto found = listen.find(listener->protocol());
      if (found != listen.end()) listener->Adopt(found->second, spec.manage);
    }
  }
  if (Fixed(listen) != Fixed(listen_)) {
    log_.Warn(
        "listen: addresses, and whether TLS is spoken there, are those of the start, and listeners "
        "for which these were changed keep their tokens and certificates; restart to change them");
  }
  RefreshListeners(true);
}

void Service::RefreshListeners(bool at_once) {
  const std::scoped_lock lock(listeners_mutex_);
  const Now now = SystemClock::Shared().Read();
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    const std::optional<Credentials> changed = listeners_[i]->Refresh(now, at_once);
    if (!changed) continue;
    for (const auto& worker : workers_) worker->Apply(i, *changed);
  }
}

std::vector<std::string> Service::ListenerFiles() const {
  const std::scoped_lock lock(listeners_mutex_);
  std::vector<std::string> files;
  for (const auto& listener : listeners_) {
    for (std::string& file : listener->Files()) files.push_back(std::move(file));
  }
  return files;
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
  snapshot.started = started_;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    MetricsSnapshot::Listener listener{.protocol = addresses_[i].protocol};
    for (const auto& worker : workers_) listener.threads.push_back(&worker->metrics(i));
    if (const TlsFiles* const tls = listeners_[i]->tls()) {
      listener.tls = {.expires = tls->expires(),
                      .reloads_applied = tls->applied(),
                      .reloads_refused = tls->refused()};
    }
    snapshot.listeners.push_back(std::move(listener));
  }
  return MetricsPage(snapshot);
}

}  // namespace weir
