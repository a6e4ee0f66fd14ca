// What is kept under a reservation's id until it is settled: for each charge its key, what was
// taken, and the limit it was taken under, should no rule of that name be left.
//
//   head     "W1", how many other slots (16 bits), each of them (16 bits)
//   charge   length of its text (32 bits), the text, then what the script adds: what was taken and
//            its receipt, four doubles
//
// Numbers are little-endian; texts have their length in front (16 bits).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/limit.h>

#include "store/store.h"

namespace weir::redis {

// One charge of a reservation. Texts point into the record.
struct RecordedCharge {
  std::string_view key{};  // The whole text.
  std::string_view rule{};
  std::uint64_t hash = 0;  // As the process that reserved has it.
  LimitSpec spec{};
  std::uint32_t family = 0;
  bool shadow = false;
  bool keeps_cost = false;
  std::int64_t times = 1;    // How many charges of the group it was.
  std::int64_t asked = 0;    // Their cost.
  std::int64_t charged = 0;  // What was really taken.
  std::int64_t receipt = 0;  // In nanoseconds.
};

struct Record {
  std::vector<std::uint16_t> other_slots{};
  std::vector<RecordedCharge> charges{};
};

void AppendRecordHead(std::string& out, std::span<const std::uint16_t> other_slots);
// All but what the script adds; `spec` is the limit's.
void AppendRecordText(std::string& out, const RecordedCharge& charge, const Limit& limit);

// Nothing if it is no record of ours.
std::optional<Record> ReadRecord(std::string_view text);

}  // namespace weir::redis
