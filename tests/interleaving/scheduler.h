// Runs a few threads of a scenario one step at a time, in every order that needs no more than a
// given number of preemptions. Threads are fibers: a step ends where the code under test does
// something that other threads can see, and there the scheduler decides who goes next.
//
// Most concurrency bugs show with two preemptions; the search is exhaustive within that bound, and
// the same bound always gives the same runs.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::interleaving {

// What one run of a scenario is made of.
struct Scenario {
  std::vector<std::function<void()>> threads;
  // Looks at the outcome when all threads are done; empty if all is well.
  std::function<std::string()> verdict;
};

struct Exploration {
  std::size_t runs = 0;
  std::size_t longest_run = 0;         // In steps.
  std::optional<std::string> failure;  // What the first bad run's verdict said,
  std::vector<std::size_t> schedule;   // and which thread took each of its steps.
};

// Runs scenarios made by `make`, which must behave the same every time, until one fails or every
// schedule with at most `preemptions` was tried.
Exploration Explore(const std::function<Scenario()>& make, int preemptions);

// For the code under test: another thread may go on here. Does nothing outside an exploration.
void Step();
// Likewise, and this thread cannot go on before another has done something.
void Wait();

}  // namespace weir::interleaving
