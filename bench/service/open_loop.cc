#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <vector>

#include "clients.h"
#include "harness/random.h"
#include "harness/require.h"
#include "load.h"

namespace weir::bench {
namespace {

// Every time is kept, so quantiles are exact.
class Times {
 public:
  explicit Times(std::size_t expected) { times_.reserve(expected); }

  void Add(Duration time) { times_.push_back(static_cast<double>(time.count()) * 1e-3); }
  double Quantile(double share) {
    Require(!times_.empty(), "something was measured");
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(times_.size() - 1));
    std::nth_element(times_.begin(), times_.begin() + at, times_.end());
    return times_[static_cast<std::size_t>(at)];
  }

 private:
  std::vector<double> times_;  // Microseconds.
};

// When requests come, and on which connection.
class Arrivals {
 public:
  Arrivals(SteadyTime begin, double rate) : rate_(rate), next_(begin) { Step(); }

  SteadyTime next() const noexcept { return next_; }
  // Exponential gaps: a Poisson process.
  void Step() noexcept {
    const double gap = -std::log1p(-random_.Fraction()) / rate_ * 1e9;
    next_ += Duration(static_cast<Duration::rep>(gap));
  }
  std::size_t Client(std::size_t clients) noexcept { return random_.Below(clients); }

 private:
  const double rate_;
  Random random_{1};
  SteadyTime next_;
};

class OpenLoop {
 public:
  OpenLoop(const LoadOptions& options, const OpenLoopOptions& open)
      : expected_(static_cast<std::size_t>(
            open.rate * std::chrono::duration<double>(options.warm_up + options.length).count())),
        // Some more than will come, because they come at random.
        requests_({.kind = options.kind,
                   .keys = open.new_keys ? expected_ + expected_ / 10 + 1000 : options.keys,
                   .each_once = open.new_keys}),
        clients_(options, requests_),
        scheduled_(clients_.size()),
        answered_(expected_),
        late_(expected_),
        arrivals_(Clock(), open.rate),
        measurement_(options) {}

  void Run() {
    // Sending everything that is due before looking at replies would add to their times.
    constexpr int kMostAtOnce = 8;
    for (SteadyTime now = Clock(); !measurement_.IsOver(now); now = Clock()) {
      begun_ = measurement_.HasBegun(now);
      for (int i = 0; i < kMostAtOnce && arrivals_.next() <= now; ++i) SendNext(now);
      clients_.Poll([&](std::size_t client, std::size_t replies) { Take(client, replies); });
    }
  }

  void Print() {
    std::printf("{");
    measurement_.PrintFields();
    std::printf(R"(, "p50": %.1f, "p99": %.1f, "p999": %.1f, "max": %.1f, "late_p99": %.1f})"
                "\n",
                answered_.Quantile(0.5), answered_.Quantile(0.99), answered_.Quantile(0.999),
                answered_.Quantile(1), late_.Quantile(0.99));
  }

 private:
  void SendNext(SteadyTime now) {
    constexpr std::size_t kMostUnanswered = 100'000;
    const std::size_t client = arrivals_.Client(clients_.size());
    clients_.Send(client, requests_.Next(1));
    if (begun_) late_.Add(now - arrivals_.next());
    scheduled_[client].push_back(arrivals_.next());
    Require(scheduled_[client].size() < kMostUnanswered, "the server keeps up with the rate");
    arrivals_.Step();
  }

  void Take(std::size_t client, std::size_t replies) {
    const SteadyTime now = Clock();
    std::deque<SteadyTime>& scheduled = scheduled_[client];
    Require(replies <= scheduled.size(), "there are no more replies than requests");
    for (std::size_t i = 0; i < replies; ++i) {
      if (begun_) answered_.Add(now - scheduled.front());
      scheduled.pop_front();
    }
    if (begun_) measurement_.Count(replies);
  }

  const std::size_t expected_;
  RequestSequence requests_;
  Clients clients_;
  std::vector<std::deque<SteadyTime>> scheduled_;  // Of what is not answered yet.
  Times answered_;
  Times late_;
  Arrivals arrivals_;
  LoadMeasurement measurement_;
  bool begun_ = false;
};

}  // namespace

void RunOpenLoop(const LoadOptions& options, const OpenLoopOptions& open) {
  OpenLoop loop(options, open);
  loop.Run();
  loop.Print();
}

}  // namespace weir::bench
