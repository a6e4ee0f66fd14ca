// The commands there are: their names, how many words they take, who may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "frontend/access.h"

namespace weir::resp {

enum class CommandId : std::uint8_t {
  kClThrottle,
  kThrottle,
  kWeirCheck,
  kWeirLimit,
  kWeirPeek,
  kWeirReserve,
  kWeirCommit,
  kWeirCancel,
  kWeirRelease,
  kWeirRefund,
  kWeirPenalize,
  kWeirReset,
  kPing,
  kEcho,
  kHello,
  kAuth,
  kClient,
  kCommand,
  kInfo,
  kSelect,
  kQuit,
  kReset,
};

inline constexpr std::size_t kAnyNumber = ~std::size_t{0};

struct CommandRow {
  std::string_view name;  // In upper case; clients may write it in any.
  CommandId id;
  Right right;        // What it takes to call it.
  std::size_t least;  // Words, the name included,
  std::size_t most;   // or kAnyNumber.
  std::size_t key;    // Which word is a key; 0: none.
  std::string_view summary;
};

// Those called most come first.
std::span<const CommandRow> Commands() noexcept;
// Null if there is none of that name.
const CommandRow* FindCommand(std::string_view name) noexcept;

bool EqualsUpperCase(std::string_view text, std::string_view upper_case) noexcept;

}  // namespace weir::resp
