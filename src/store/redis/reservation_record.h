// What is kept under a reservation's id until it is settled: for each charge its key, what was
// taken, and the limit it was taken under, should no rule of that name be left.
//
//   head     "W2", what it turned out to cost, as whoever asked first has it (a kind of 8 bits, 0
//            while nobody has; 64 bits), how many other slots (16 bits), each of them (16 bits)
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

// How a reservation is to be settled.
struct Settling {
  Action action = Action::kCommit;  // Or kCancel.
  std::int64_t cost = 0;
  bool keeps_cost = false;

  bool operator==(const Settling&) const = default;
};

struct Record {
  std::optional<Settling> settling{};
  std::vector<std::uint16_t> other_slots{};
  std::vector<RecordedCharge> charges{};
};

// What a kCommit or kCancel wants.
Settling SettlingOf(const Group& group) noexcept;
// As the head has it.
void AppendSettling(std::string& out, const Settling& settling);
void AppendRecordHead(std::string& out, std::span<const std::uint16_t> other_slots);
// All but what the script adds; `spec` is the limit's.
void AppendRecordText(std::string& out, const RecordedCharge& charge, const Limit& limit);

// What is told of one that has no record.
Error ReservationNotFound();

// Nothing if it is no record of ours.
std::optional<Record> ReadRecord(std::string_view text);

}  // namespace weir::redis
