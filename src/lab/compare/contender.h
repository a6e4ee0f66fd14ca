// The same limit by every algorithm that can count it, and what each of them promises.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <weir/limit.h>

namespace weir::lab {

struct Contender {
  std::string name;  // sliding_window strict
  Limit limit;
};

// An algorithm that is not compared, and why.
struct LeftOut {
  std::string name;
  std::string why;
};

struct Contenders {
  std::vector<Contender> all{};
  std::vector<LeftOut> left_out{};
};

// Of a limit that is a token bucket: buckets get its burst, windows its count and period. A leaky
// bucket as a meter decides as the token bucket does, and is no contender of its own.
Contenders MakeContenders(const Limit& limit);

// How much may go ahead, if no request costs more than `largest_cost`.
struct Promise {
  std::int64_t in_window = 0;  // In any interval of one period.
  // Buckets: in an interval of any length at most this, and what the rate brings meanwhile.
  std::int64_t burst = 0;
  std::string in_words{};  // How in_window comes about: burst + limit.
};
Promise PromiseOf(const Limit& limit, std::int64_t largest_cost);

bool IsBucket(const Limit& limit) noexcept;

}  // namespace weir::lab
