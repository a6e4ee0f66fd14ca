#include "store/memory/limit_records.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace weir {
namespace {

constexpr std::uint8_t kDefinition = 1;
constexpr std::uint8_t kReference = 0;
constexpr std::size_t kMostZoneBytes = 256;
// Longer than any limit counts.
constexpr std::int64_t kLongest = Duration(std::chrono::hours(24 * 366 * 20)).count();

template <std::integral Number>
void Append(Number number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename Enum>
Enum ReadEnum(SnapshotReader& reader, Enum last) {
  return static_cast<Enum>(
      reader.GetWithin<std::uint8_t>(0, static_cast<std::uint8_t>(last), "a limit"));
}

std::string Definition(const Limit& limit, std::uint32_t predecessor, SteadyTime now) {
  const LimitSpec& spec = limit.spec();
  std::string bytes;
  Append(std::to_underlying(spec.kind), bytes);
  Append(std::to_underlying(spec.algorithm), bytes);
  for (const bool flag : {spec.queue, spec.overdraft, spec.strict}) {
    Append(std::uint8_t{flag}, bytes);
  }
  Append(std::to_underlying(spec.align), bytes);
  Append(std::to_underlying(spec.calendar), bytes);
  Append(static_cast<std::uint8_t>(spec.week_start.c_encoding()), bytes);
  Append(std::int32_t{spec.sub_windows}, bytes);
  for (const std::int64_t number :
       {spec.count, spec.period.count(), spec.burst, spec.lease.count(), spec.max_wait.count()}) {
    Append(number, bytes);
  }
  Append(static_cast<std::uint32_t>(spec.zone.size()), bytes);
  bytes += spec.zone;
  Append(limit.generation(), bytes);
  Append(limit.furthest(), bytes);
  Append(predecessor, bytes);
  const Duration counts = limit.predecessor_until() - now;
  Append(predecessor == 0 ? 0 : std::clamp(counts.count(), -kLongest, kLongest), bytes);
  return bytes;
}

}  // namespace

std::uint32_t LimitWriter::NumberOf(const Limit& limit) {
  const Limit* const before = limit.predecessor();
  const std::uint32_t predecessor = before == nullptr ? 0 : NumberOf(*before) + 1;
  std::string definition = Definition(limit, predecessor, now_);
  const auto number = static_cast<std::uint32_t>(numbers_.size());
  const auto [known, is_new] = numbers_.emplace(std::move(definition), number);
  if (is_new) {
    writer_.Put(kDefinition);
    writer_.PutBytes(std::as_bytes(std::span(known->first)));
  }
  return known->second;
}

void LimitWriter::Put(const Limit& limit) {
  const std::uint32_t number = NumberOf(limit);
  writer_.Put(kReference);
  writer_.Put(number);
}

LimitSpec LimitReader::ReadSpec() {
  LimitSpec spec;
  spec.kind = ReadEnum(reader_, LimitKind::kDeny);
  spec.algorithm = ReadEnum(reader_, Algorithm::kConcurrency);
  for (bool* const flag : {&spec.queue, &spec.overdraft, &spec.strict}) {
    *flag = reader_.GetWithin<std::uint8_t>(0, 1, "a limit") != 0;
  }
  spec.align = ReadEnum(reader_, Align::kCalendar);
  spec.calendar = ReadEnum(reader_, CalendarPeriod::kYear);
  spec.week_start = std::chrono::weekday(reader_.GetWithin<std::uint8_t>(0, 6, "a limit"));
  spec.sub_windows = reader_.Get<std::int32_t>();
  spec.count = reader_.Get<std::int64_t>();
  spec.period = Duration(reader_.Get<std::int64_t>());
  spec.burst = reader_.Get<std::int64_t>();
  spec.lease = Duration(reader_.Get<std::int64_t>());
  spec.max_wait = Duration(reader_.Get<std::int64_t>());
  spec.zone = reader_.GetText(kMostZoneBytes);
  return spec;
}

Result<Limit> LimitReader::ReadDefinition() {
  const LimitSpec spec = ReadSpec();
  Limit::Past past{.generation = reader_.Get<std::uint64_t>(),
                   .furthest = reader_.Get<std::int64_t>()};
  const auto predecessor = reader_.Get<std::uint32_t>();
  const auto counts = reader_.GetWithin(-kLongest, kLongest, "a limit");
  if (predecessor > limits_.size()) {
    return std::unexpected(
        Error{ErrorCode::kInvalidArgument, "it names a limit that is not there"});
  }
  if (predecessor != 0) {
    past.predecessor = std::make_shared<const Limit>(limits_[predecessor - 1]);
    past.predecessor_until = written_at_ + Duration(counts);
  }
  const Result<Limit> limit = Limit::Make(spec);
  return limit ? limit->WithPast(past) : limit;
}

Limit LimitReader::Get() {
  while (reader_.GetWithin<std::uint8_t>(0, kDefinition, "a limit") == kDefinition) {
    Result<Limit> limit = ReadDefinition();
    if (reader_.failed()) break;
    if (!limit) {
      reader_.Refuse("a limit that cannot be: " + limit.error().message);
      break;
    }
    limits_.push_back(*std::move(limit));
  }
  const auto number = reader_.Get<std::uint32_t>();
  if (number >= limits_.size()) reader_.Refuse("it names a limit that is not there");
  if (reader_.failed()) return *Limit::Make({.kind = LimitKind::kDeny});
  return limits_[number];
}

}  // namespace weir
