// What the peaks of all clients say: who is unlike the others, and what those others need.
#pragma once

#include <vector>

#include "lab/calibrate/calibration.h"
#include "lab/calibrate/client_table.h"

namespace weir::lab {

// Who was set apart.
class SetApart {
 public:
  explicit SetApart(std::size_t clients) : is_apart_(clients, 0) {}
  void Add(ClientId id) noexcept {
    if (is_apart_[id] == 0) ++count_;
    is_apart_[id] = 1;
  }
  bool Has(ClientId id) const noexcept { return is_apart_[id] != 0; }
  std::size_t count() const noexcept { return count_; }

 private:
  std::vector<std::uint8_t> is_apart_;
  std::size_t count_ = 0;
};

// Fills in the behaviour for all periods that the log lasts for, and who is set apart.
SetApart LearnBehaviour(const ClientTable& clients, Calibration& calibration);

}  // namespace weir::lab
