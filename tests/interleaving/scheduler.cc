#include "interleaving/scheduler.h"

#include <algorithm>
#include <csetjmp>
#include <utility>

namespace weir::interleaving {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
// A run that takes more steps than this goes round in circles.
constexpr std::size_t kMostSteps = 5'000;

// One decision of the scheduler: who might have gone on, in the order in which they are tried.
struct Choice {
  std::vector<std::size_t> candidates;
  std::size_t taken = 0;
  bool preempts = false;  // All candidates but the first cost a preemption.
};

struct Fiber {
  std::function<void()> body;
  ucontext_t first_entry{};
  std::jmp_buf resume{};
  bool started = false;
  std::unique_ptr<char[]> stack{};
  bool done = false;
  // Threads that have to take a step before this one may go on: set when it waits, so that those
  // who spin cannot keep the one they spin for from running.
  std::uint64_t waits_for = 0;
};

class Runner {
 public:
  Runner(Scenario& scenario, std::vector<Choice>& choices, int preemptions)
      : choices_(choices), preemptions_(preemptions) {
    for (auto& body : scenario.threads) fibers_.push_back(std::make_unique<Fiber>(Fiber{body}));
  }

  // False if the threads wait for each other for ever.
  bool Run() {
    running_ = this;
    for (auto& fiber : fibers_) Start(*fiber);
    std::optional<std::size_t> last;
    bool progress = true;
    while (const auto next = Choose(last)) {
      progress = steps_.size() < kMostSteps;
      if (!progress) break;
      steps_.push_back(*next);
      last = *next;
      current_ = fibers_[*next].get();
      SwitchTo(*current_);
      for (auto& fiber : fibers_) fiber->waits_for &= ~Bit(*next);
    }
    running_ = nullptr;
    return progress && std::ranges::all_of(fibers_, [](auto& fiber) { return fiber->done; });
  }

  const std::vector<std::size_t>& steps() const { return steps_; }

  static void Yield(bool waiting) {
    if (running_ == nullptr) return;
    Fiber& fiber = *running_->current_;
    fiber.waits_for = waiting ? running_->Others(fiber) : 0;
    if (_setjmp(fiber.resume) == 0) _longjmp(running_->main_, 1);
  }

 private:
  static std::uint64_t Bit(std::size_t thread) { return std::uint64_t{1} << thread; }

  std::uint64_t Others(const Fiber& fiber) const {
    std::uint64_t others = 0;
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      if (fibers_[i].get() != &fiber && !fibers_[i]->done) others |= Bit(i);
    }
    return others;
  }

  void Start(Fiber& fiber) {
    fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
    getcontext(&fiber.first_entry);
    fiber.first_entry.uc_stack.ss_sp = fiber.stack.get();
    fiber.first_entry.uc_stack.ss_size = kStackBytes;
    fiber.first_entry.uc_link = nullptr;
    makecontext(&fiber.first_entry, &Runner::Main, 0);
  }

  // Jumps rather than swapcontext, which asks the system for the signal mask each time and would
  // make up most of the run.
  void SwitchTo(Fiber& fiber) {
    if (_setjmp(main_) != 0) return;
    if (std::exchange(fiber.started, true)) _longjmp(fiber.resume, 1);
    setcontext(&fiber.first_entry);
  }

  static void Main() {
    Runner& runner = *running_;
    runner.current_->body();
    runner.current_->done = true;
    _longjmp(runner.main_, 1);  // A fiber that is done is never gone back to.
  }

  // The next thread, as the choices so far say, or as comes first. None when nobody can go on.
  std::optional<std::size_t> Choose(std::optional<std::size_t> last) {
    std::vector<std::size_t> candidates;
    const auto can_run = [&](std::size_t i) {
      return !fibers_[i]->done && fibers_[i]->waits_for == 0;
    };
    if (last && can_run(*last)) candidates.push_back(*last);
    const bool preempts = !candidates.empty();
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      if (i != last && can_run(i)) candidates.push_back(i);
    }
    if (candidates.empty()) return std::nullopt;
    if (preempts && preemptions_ == 0) candidates.erase(candidates.begin() + 1, candidates.end());
    const std::size_t at = steps_.size();
    if (at == choices_.size()) choices_.push_back({candidates, 0, preempts});
    const Choice& choice = choices_[at];
    if (choice.preempts && choice.taken > 0) --preemptions_;
    return choice.candidates[choice.taken];
  }

  static inline Runner* running_ = nullptr;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Choice>& choices_;
  int preemptions_;
  std::vector<std::size_t> steps_;
  Fiber* current_ = nullptr;
  std::jmp_buf main_{};
};

// The next schedule in depth-first order; false when there is none.
bool Advance(std::vector<Choice>& choices) {
  while (!choices.empty() && choices.back().taken + 1 == choices.back().candidates.size()) {
    choices.pop_back();
  }
  if (choices.empty()) return false;
  ++choices.back().taken;
  return true;
}

}  // namespace

Exploration Explore(const std::function<Scenario()>& make, int preemptions) {
  Exploration exploration;
  std::vector<Choice> choices;
  do {
    Scenario scenario = make();
    Runner runner(scenario, choices, preemptions);
    const bool finished = runner.Run();
    ++exploration.runs;
    exploration.longest_run = std::max(exploration.longest_run, runner.steps().size());
    const std::string complaint =
        finished ? scenario.verdict() : "the threads wait for each other for ever";
    if (!complaint.empty()) {
      exploration.failure = complaint;
      exploration.schedule = runner.steps();
      return exploration;
    }
  } while (Advance(choices));
  return exploration;
}

void Step() { Runner::Yield(false); }
void Wait() { Runner::Yield(true); }

}  // namespace weir::interleaving
