// A job queue: worker threads wait for their turn under a rate, and for one of a few places at
// the database, instead of failing. Jobs that nobody stands waiting for get a callback.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <latch>
#include <thread>
#include <vector>

#include <weir/weir.h>

namespace {

using std::chrono::seconds;

// Stands for a query that takes a while; returns how many ran at the time.
int RunQuery() {
  static std::atomic<int> running{0};
  const int now = ++running;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  --running;
  return now;
}

}  // namespace

int main() {
  // Started at 200 a second; at the database at most two at once. Should a worker die with a
  // place in its hands, the place is free again after ten seconds.
  auto starts = weir::Limiter::Make("200/s burst 5");
  auto places = weir::Limiter::Make("2 concurrent lease 10s");
  if (!starts || !places) return 1;

  std::atomic<int> done{0};
  std::atomic<bool> crowded{false};
  const auto began = std::chrono::steady_clock::now();
  const auto work = [&] {
    for (int job = 0; job < 10; ++job) {
      const auto turn = starts->Wait("mailer", seconds(5));
      if (!turn || !turn->allowed) continue;
      const auto place = places->AcquireWithin("database", seconds(5));
      if (!place || !place->allowed()) continue;
      if (RunQuery() > 2) crowded = true;
      ++done;
    }
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) workers.emplace_back(work);
  workers.clear();  // Joins them.
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("4 workers did %d jobs in %.0f ms, %s more than two at the database\n", done.load(),
              took.count() * 1000, crowded ? "at times" : "never");

  // Without a thread that stands waiting: the callback comes when it is the job's turn.
  std::latch called(10);
  const auto later = [&](const weir::Decision& decision) {
    std::fputs(decision.allowed ? "." : "x", stdout);
    called.count_down();
  };
  for (int job = 0; job < 10; ++job) {
    if (!starts->WaitThen("mailer", seconds(5), later)) called.count_down();
  }
  called.wait();
  std::puts(" ten more were called back, one every 5 ms");
  return 0;
}
