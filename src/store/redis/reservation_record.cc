#include "store/redis/reservation_record.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/redis/charge_numbers.h"
#include "store/redis/slots.h"

namespace weir::redis {
namespace {

constexpr std::string_view kMagic = "W2";

class Writer {
 public:
  explicit Writer(std::string& out) noexcept : out_(out) {}

  template <typename T>
  void Number(T number) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &number, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void Text(std::string_view text) {
    const std::size_t size = std::min<std::size_t>(text.size(), UINT16_MAX);
    Number(static_cast<std::uint16_t>(size));
    out_.append(text.substr(0, size));
  }

 private:
  std::string& out_;
};

// Once something is missing everything is nothing.
class Reader {
 public:
  explicit Reader(std::string_view rest) noexcept : rest_(rest) {}

  template <typename T>
  T Number() noexcept {
    T number{};
    const std::string_view bytes = Bytes(sizeof(T));
    if (good_) std::memcpy(&number, bytes.data(), sizeof(T));
    return number;
  }
  std::string_view Text() noexcept { return Bytes(Number<std::uint16_t>()); }
  std::string_view Bytes(std::size_t count) noexcept {
    good_ = good_ && rest_.size() >= count;
    if (!good_) return {};
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  bool good() const noexcept { return good_; }
  bool empty() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

enum Flag : std::uint8_t {
  kShadow = 1,
  kKeepsCost = 2,
  kQueue = 4,
  kOverdraft = 8,
  kStrict = 16,
};

// What a settlement is, in a head.
enum SettlingKind : std::uint8_t { kUndecided, kCommits, kCommitsAsReserved, kCancels };

// Nothing while it is undecided, or if it makes no sense.
std::optional<Settling> ReadSettling(Reader& reader) {
  const auto kind = reader.Number<std::uint8_t>();
  const auto cost = reader.Number<std::int64_t>();
  if (kind == kUndecided || kind > kCancels || cost < 0) return std::nullopt;
  return Settling{.action = kind == kCancels ? Action::kCancel : Action::kCommit,
                  .cost = cost,
                  .keeps_cost = kind == kCommitsAsReserved};
}

void WriteSpec(Writer& writer, const LimitSpec& spec) {
  writer.Number(std::to_underlying(spec.algorithm));
  writer.Number(std::to_underlying(spec.align));
  writer.Number(std::to_underlying(spec.calendar));
  writer.Number(static_cast<std::uint8_t>(spec.week_start.c_encoding()));
  writer.Number(static_cast<std::uint8_t>(spec.sub_windows));
  writer.Number(spec.count);
  writer.Number(std::int64_t{spec.period.count()});
  writer.Number(spec.burst);
  writer.Number(std::int64_t{spec.lease.count()});
  writer.Number(std::int64_t{spec.max_wait.count()});
  writer.Text(spec.zone);
}

LimitSpec ReadSpec(Reader& reader, std::uint8_t flags) {
  LimitSpec spec;
  spec.algorithm = Algorithm{reader.Number<std::uint8_t>()};
  spec.align = Align{reader.Number<std::uint8_t>()};
  spec.calendar = CalendarPeriod{reader.Number<std::uint8_t>()};
  spec.week_start = std::chrono::weekday(reader.Number<std::uint8_t>());
  spec.sub_windows = reader.Number<std::uint8_t>();
  spec.count = reader.Number<std::int64_t>();
  spec.period = Duration(reader.Number<std::int64_t>());
  spec.burst = reader.Number<std::int64_t>();
  spec.lease = Duration(reader.Number<std::int64_t>());
  spec.max_wait = Duration(reader.Number<std::int64_t>());
  spec.zone = std::string(reader.Text());
  spec.queue = (flags & kQueue) != 0;
  spec.overdraft = (flags & kOverdraft) != 0;
  spec.strict = (flags & kStrict) != 0;
  return spec;
}

// A time of two doubles, if it is one.
std::optional<std::int64_t> TimeOf(double seconds, double nanoseconds) noexcept {
  const bool sane = seconds >= 0 && seconds < 9e9 && nanoseconds >= 0 && nanoseconds < 1e9;
  if (!sane) return std::nullopt;
  return static_cast<std::int64_t>(seconds) * kNanosecondsPerSecond +
         static_cast<std::int64_t>(nanoseconds);
}

bool IsBucket(const LimitSpec& spec) noexcept {
  return spec.algorithm == Algorithm::kTokenBucket || spec.algorithm == Algorithm::kLeakyBucket;
}

// Of a bucket the script has noted time, and only an overdraft may have been charged less than it
// asked for. Costs nothing to find out: T is what it was then.
std::optional<std::int64_t> ChargedOf(const RecordedCharge& charge, double first, double second) {
  if (!IsBucket(charge.spec)) {
    if (!(first >= 0 && first <= 4e15)) return std::nullopt;
    return static_cast<std::int64_t>(first);
  }
  const auto taken = TimeOf(first, second);
  if (!taken || charge.spec.count <= 0) return std::nullopt;
  if (!charge.spec.overdraft) return charge.asked;
  const std::int64_t interval =
      (charge.spec.period.count() + charge.spec.count - 1) / charge.spec.count;
  return *taken / std::max<std::int64_t>(1, interval);
}

std::optional<RecordedCharge> ReadCharge(Reader& reader) {
  Reader text(reader.Bytes(reader.Number<std::uint32_t>()));
  RecordedCharge charge;
  const auto flags = text.Number<std::uint8_t>();
  charge.shadow = (flags & kShadow) != 0;
  charge.keeps_cost = (flags & kKeepsCost) != 0;
  charge.family = text.Number<std::uint32_t>();
  charge.hash = text.Number<std::uint64_t>();
  charge.times = text.Number<std::int64_t>();
  charge.asked = text.Number<std::int64_t>();
  charge.key = text.Text();
  charge.rule = text.Text();
  charge.spec = ReadSpec(text, flags);
  const auto first = reader.Number<double>();
  const auto second = reader.Number<double>();
  const auto seconds = reader.Number<double>();
  const auto nanoseconds = reader.Number<double>();
  const bool known = charge.spec.algorithm <= Algorithm::kConcurrency &&
                     charge.spec.align <= Align::kCalendar &&
                     charge.spec.calendar <= CalendarPeriod::kYear;
  if (!reader.good() || !text.good() || !known || charge.times < 1 || charge.key.empty()) {
    return std::nullopt;
  }
  const auto charged = ChargedOf(charge, first, second);
  const auto receipt = TimeOf(seconds, nanoseconds);
  if (!charged || !receipt) return std::nullopt;
  charge.charged = *charged;
  charge.receipt = *receipt;
  return charge;
}

}  // namespace

Settling SettlingOf(const Group& group) noexcept {
  if (group.action == Action::kCancel) return {.action = Action::kCancel};
  if (group.keeps_cost) return {.keeps_cost = true};
  return {.cost = group.cost};
}

void AppendSettling(std::string& out, const Settling& settling) {
  Writer writer(out);
  const bool cancels = settling.action == Action::kCancel;
  writer.Number<std::uint8_t>(cancels               ? kCancels
                              : settling.keeps_cost ? kCommitsAsReserved
                                                    : kCommits);
  writer.Number(settling.cost);
}

void AppendRecordHead(std::string& out, std::span<const std::uint16_t> other_slots) {
  Writer writer(out);
  out.append(kMagic);
  writer.Number<std::uint8_t>(kUndecided);
  writer.Number(std::int64_t{0});
  writer.Number(static_cast<std::uint16_t>(other_slots.size()));
  for (const std::uint16_t slot : other_slots) writer.Number(slot);
}

void AppendRecordText(std::string& out, const RecordedCharge& charge, const Limit& limit) {
  const LimitSpec& spec = limit.spec();
  const std::size_t begin = out.size();
  Writer writer(out);
  writer.Number(std::uint32_t{0});
  const int flags = (charge.shadow ? kShadow : 0) | (charge.keeps_cost ? kKeepsCost : 0) |
                    (spec.queue ? kQueue : 0) | (spec.overdraft ? kOverdraft : 0) |
                    (spec.strict ? kStrict : 0);
  writer.Number(static_cast<std::uint8_t>(flags));
  writer.Number(limit.family());
  writer.Number(charge.hash);
  writer.Number(charge.times);
  writer.Number(charge.asked);
  writer.Text(charge.key);
  writer.Text(charge.rule);
  WriteSpec(writer, spec);
  const auto length = static_cast<std::uint32_t>(out.size() - begin - sizeof(std::uint32_t));
  std::memcpy(out.data() + begin, &length, sizeof(length));
}

Error ReservationNotFound() {
  return {.code = ErrorCode::kNotFound,
          .message = "reservation: unknown, settled before, or expired"};
}

std::optional<Record> ReadRecord(std::string_view text) {
  Reader reader(text);
  if (reader.Bytes(kMagic.size()) != kMagic) return std::nullopt;
  Record record;
  record.settling = ReadSettling(reader);
  const auto others = reader.Number<std::uint16_t>();
  for (std::size_t i = 0; i < others && reader.good(); ++i) {
    record.other_slots.push_back(reader.Number<std::uint16_t>() % kSlots);
  }
  while (reader.good() && !reader.empty() && record.charges.size() < kMaxGroupCharges) {
    auto charge = ReadCharge(reader);
    if (!charge) return std::nullopt;
    record.charges.push_back(*std::move(charge));
  }
  if (!reader.good() || !reader.empty()) return std::nullopt;
  return record;
}

}  // namespace weir::redis
