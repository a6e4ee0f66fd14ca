// What the tests of the protocols share: an exchange without a connection. Bytes go in, bytes come
// out, on a real engine whose clock is moved by hand.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/clock.h>
#include <weir/engine.h>
#include <weir/policy.h>

#include "frontend/desk.h"
#include "frontend/late_engine_under_test.h"
#include "frontend/protocol.h"
#include "frontend/replies.h"
#include "net/loop.h"

namespace weir {

// Has a time and nothing else.
class ClockLoop final : public Loop {
 public:
  explicit ClockLoop(const Clock& clock) noexcept : clock_(clock) {}

  Now now() noexcept override { return clock_.Read(); }
  Now ReadClock() const noexcept override { return clock_.Read(); }
  void Post(std::function<void()> task) override { task(); }
  void AtTurnEnd(TurnEnd& told) override { told.OnTurnEnd(); }
  void ForgetTurnEnd(TurnEnd& /*told*/) noexcept override {}
  std::unique_ptr<Timer> MakeTimer(std::function<void()> /*on_due*/) override { return nullptr; }
  std::unique_ptr<Stream> Connect(const Endpoint& /*endpoint*/,
                                  std::function<void(Result<void>)> /*connected*/) override {
    return nullptr;
  }

 private:
  const Clock& clock_;
};

class StateUnderTest final : public ServiceState {
 public:
  Readiness readiness() const noexcept override { return ready; }
  std::string MetricsText() const override { return "# the text of the metrics\n"; }

  Readiness ready = Readiness::kReady;
};

class ExchangeUnderTest : public Exchange {
 public:
  struct Options {
    Access access{.manage_open = true};
    Settings settings{};
    Replies::Bounds bounds{.bytes = std::size_t{1} << 20, .held = 1'000};
    bool late = false;  // Asks the LateEngine, which answers when the test says so.
  };

  // The policy is known to be right.
  ExchangeUnderTest(const Policy& policy, MakeProtocol make_protocol, const Options& options)
      : engine(*Engine::Make(policy, {.clock = &clock})),
        desk_{.engine = engine,
              .loop = loop_,
              .state = state,
              .settings = SettingsOf(options),
              .questions = options.late ? &late : nullptr},
        door_{.desk = desk_, .access = options.access, .metrics = metrics},
        bounds_(options.bounds),
        make_protocol_(make_protocol) {
    Reconnect();
  }
  ExchangeUnderTest(const Policy& policy, MakeProtocol make_protocol)
      : ExchangeUnderTest(policy, make_protocol, Options{}) {}
  ExchangeUnderTest(const ExchangeUnderTest&) = delete;
  ExchangeUnderTest& operator=(const ExchangeUnderTest&) = delete;
  ~ExchangeUnderTest() override {
    ++connection_;
    late.AnswerAll();  // To nobody.
  }

  // As if this connection had ended and another had come.
  void Reconnect() {
    input_.clear();
    waits.clear();
    protocol_.reset();
    ++connection_;
    replies_.emplace(bounds_);
    protocol_ = make_protocol_(*this);
  }

  // Hands the bytes, behind those left over, to the protocol, and takes away what can be sent.
  std::string Send(std::string_view bytes) {
    input_ += bytes;
    TakeUp();
    return Take();
  }
  // The same in pieces of this many bytes.
  std::string SendInPieces(std::string_view bytes, std::size_t piece) {
    std::string replies;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      replies += Send(bytes.substr(0, piece));
    }
    return replies;
  }
  // Has the protocol look again at what is left over.
  void TakeUp() {
    if (input_.empty() || replies_->closing()) return;
    last = protocol_->OnInput(input_);
    decided += last.decided;
    input_.erase(0, last.used);
  }
  std::string Take() {
    std::string sent(replies_->ready().view());
    replies_->ready().Clear();
    return sent;
  }

  // A check that waits: nobody decides but the test, by calling Decide.
  struct Wait {
    ReplyPlace place;
    Ask ask;
    Duration patience;
    std::string user;
    std::vector<std::string> rules{};
    WaitFor what = WaitFor::kRoom;
    std::string path{};
  };
  void Decide(const Wait& wait, const Answer& answer) {
    protocol_->OnAnswered(wait.place, {.answer = answer});
  }

  Door& door() noexcept override { return door_; }
  Replies& replies() noexcept override { return *replies_; }
  std::string_view peer() const noexcept override { return address; }
  bool draining() const noexcept override { return is_draining; }
  void AskLater(const Question& question, const ReplyPlace& place) override {
    late.Ask(question, [this, place, asked_by = connection_](const Told& told) {
      if (asked_by == connection_) protocol_->OnAnswered(place, told);
    });
  }
  void CheckWaiting(const Request& request, const Ask& ask, Duration patience,
                    const ReplyPlace& place) override {
    waits.push_back({.place = place,
                     .ask = ask,
                     .patience = patience,
                     .user = std::string(request.user),
                     .rules = {request.rules.begin(), request.rules.end()}});
  }
  void CheckQueueing(const Request& request, const Ask& ask, Duration hold,
                     const ReplyPlace& place) override {
    waits.push_back({.place = place,
                     .ask = ask,
                     .patience = hold,
                     .user = std::string(request.user),
                     .what = WaitFor::kQueues,
                     .path = std::string(request.path)});
  }

  void CancelWaiting(const ReplyPlace& place) override {
    std::erase_if(waits, [&](const Wait& wait) { return wait.place.ticket == place.ticket; });
  }

  Protocol& protocol() noexcept { return *protocol_; }
  std::string_view left_over() const noexcept { return input_; }

  ManualClock clock;
  Engine engine;
  StateUnderTest state;
  ListenerMetrics metrics;
  std::vector<Wait> waits;
  std::string address = "203.0.113.9";
  bool is_draining = false;
  Protocol::Progress last{};  // What the protocol said of the last bytes.
  std::uint64_t decided = 0;

 private:
  // As of the policy, unless the test has its own.
  std::shared_ptr<const Settings> SettingsOf(const Options& options) const {
    Settings settings = options.settings;
    const PolicySpec& spec = engine.policy().spec();
    settings.identity = engine.identity();
    settings.queue_hold = spec.queue_hold;
    settings.queues = Settings::Of(spec, engine.identity())->queues;
    return std::make_shared<Settings>(std::move(settings));
  }

  ClockLoop loop_{clock};

 public:
  LateEngine late{engine, loop_};

 private:
  Desk desk_;
  Door door_;
  Replies::Bounds bounds_;
  MakeProtocol make_protocol_;
  std::optional<Replies> replies_;
  std::unique_ptr<Protocol> protocol_;
  std::string input_;
  std::uint64_t connection_ = 0;  // Counts them.
};

}  // namespace weir
