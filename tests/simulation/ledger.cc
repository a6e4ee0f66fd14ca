#include "ledger.h"

#include <algorithm>
#include <map>

namespace weir::simulation {
namespace {

struct Change {
  WallTime at{};
  const LedgerLine* charge = nullptr;  // One of the two.
  const LedgerLine* after = nullptr;
};

bool GivesBackItsOwn(const LedgerLine& line) {
  return !line.effect.is_refund && line.effect.is_certain() && line.effect.least < 0;
}

// Everything in the order in which the server did it, if that is known. Charges never mind what is
// done in the same microsecond: they are the newest. A refund and a settlement do.
std::optional<std::vector<Change>> InOrder(const std::vector<LedgerLine>& lines) {
  std::vector<Change> changes;
  for (const LedgerLine& line : lines) {
    changes.push_back({.at = line.date, .charge = &line});
    if (!line.effect.is_certain()) return std::nullopt;
    if (line.effect.least == 0) continue;
    if (!line.effect.at) return std::nullopt;
    changes.push_back({.at = *line.effect.at, .after = &line});
  }
  // Not stable: what is charged in the same microsecond comes first.
  std::ranges::sort(changes, [](const Change& a, const Change& b) {
    return a.at != b.at ? a.at < b.at : a.charge != nullptr && b.charge == nullptr;
  });
  std::map<WallTime, bool> is_refund;
  for (const Change& it : changes) {
    if (it.after == nullptr) continue;
    const auto [first, is_new] = is_refund.emplace(it.at, it.after->effect.is_refund);
    if (!is_new && first->second != it.after->effect.is_refund) return std::nullopt;
  }
  return changes;
}

std::int64_t Replay(const std::vector<Change>& changes) {
  std::map<WallTime, std::int64_t> log;  // What is left of each date.
  for (const Change& it : changes) {
    if (it.charge != nullptr) {
      log[it.at] += it.charge->cost;
      continue;
    }
    const Effect& effect = it.after->effect;
    if (effect.least > 0) {
      log[it.at] += effect.least;
    } else if (!effect.is_refund) {
      std::int64_t& left = log[it.after->date];
      left -= std::min(left, -effect.least);
    } else {
      std::int64_t units = -effect.least;
      for (auto& [date, left] : log) {
        const std::int64_t taken = std::min(left, units);
        left -= taken;
        units -= taken;
      }
    }
  }
  std::int64_t total = 0;
  for (const auto& [date, left] : log) total += left;
  return total;
}

// How much of what a settlement gives back refunds may have taken before it. They came to its event
// only when all older ones were empty, so what those held without their own settlements was
// refunded first.
std::int64_t MostCutShort(const std::vector<LedgerLine>& lines, const LedgerLine& settled) {
  std::int64_t refunded = 0;
  std::int64_t older = 0;
  for (const LedgerLine& line : lines) {
    const Effect& effect = line.effect;
    const std::int64_t given_back = std::max<std::int64_t>(0, -effect.least);
    if (effect.is_refund && effect.sent <= settled.effect.ended) refunded += given_back;
    if (line.date < settled.date) older += line.cost - (effect.is_refund ? 0 : given_back);
  }
  const std::int64_t kept = settled.cost + settled.effect.least;
  return std::clamp<std::int64_t>(refunded - older - kept, 0, -settled.effect.least);
}

}  // namespace

LedgerBounds BoundsOfSums(const std::vector<LedgerLine>& lines, std::int64_t unknown) {
  LedgerBounds bounds{.least = 0, .most = unknown};
  for (const LedgerLine& line : lines) {
    bounds.least += line.cost + line.effect.least;
    bounds.most += line.cost + line.effect.most;
  }
  return bounds;
}

LedgerBounds BoundsOfLog(const std::vector<LedgerLine>& lines, std::int64_t unknown) {
  const auto changes = unknown == 0 ? InOrder(lines) : std::nullopt;
  if (changes) {
    const std::int64_t total = Replay(*changes);
    return {.least = total, .most = total};
  }
  LedgerBounds bounds = BoundsOfSums(lines, unknown);
  for (const LedgerLine& line : lines) {
    if (GivesBackItsOwn(line)) bounds.most += MostCutShort(lines, line);
  }
  return bounds;
}

}  // namespace weir::simulation
