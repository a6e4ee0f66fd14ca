// What a call sends: see the head of the script for its form.
#include <array>
#include <cstring>

#include "net/decimal.h"
#include "net/resp/writer.h"
#include "store/redis/charge_numbers.h"
#include "store/redis/script_call.h"

namespace weir::redis {
namespace {

// Script and simulator read little-endian numbers; so does every machine this is built for.
template <typename T>
std::string_view BytesOf(const std::vector<T>& numbers) noexcept {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

class CommandWriter {
 public:
  CommandWriter(ByteBuffer& out, std::size_t words) : out_(out) { Header('*', words); }

  void Word(std::string_view text) {
    Header('$', text.size());
    out_.Append(text);
    out_.Append("\r\n");
  }
  void Word(std::string_view first, std::string_view second) {
    Header('$', first.size() + second.size());
    out_.Append(first);
    out_.Append(second);
    out_.Append("\r\n");
  }
  void Number(std::size_t number) {
    std::array<char, kMostDecimalBytes> digits;
    const char* end = PutDecimal(digits.data(), static_cast<std::int64_t>(number));
    Word({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }

 private:
  void Header(char type, std::size_t number) {
    char* const begin = out_.Room(kMostDecimalBytes + 3);
    *begin = type;
    char* at = PutDecimal(begin + 1, static_cast<std::int64_t>(number));
    *at++ = '\r';
    *at++ = '\n';
    out_.WroteUpTo(at);
  }

  ByteBuffer& out_;
};

}  // namespace

// Plain keys first, so that one MGET reads them; then logs, then records.
void ScriptCall::SetPlaces() const {
  order_.clear();
  logs_ = 0;
  for (const KeyUse use :
       {KeyUse::kPlain, KeyUse::kRecordToRead, KeyUse::kUndone, KeyUse::kLog, KeyUse::kRecord}) {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i].use != use) continue;
      order_.push_back(i);
      keys_[i].place = static_cast<std::uint16_t>(order_.size());
    }
    if (use == KeyUse::kUndone) plain_ = order_.size();
  }
}

bool ScriptCall::IsShort() const noexcept {
  for (const Work& work : works_) {
    if (work.stage == Stage::kDone) continue;
    if (work.stage != Stage::kDecide || work.head != 0) return false;
  }
  for (const Entry& entry : entries_) {
    if (entry.shadow || KindOf(*entry.limit) != StateKind::kBucket) return false;
    if (!LevelChangeOf(*entry.limit, entry.request).is_short()) return false;
  }
  return true;
}

const ScriptCall::Work* ScriptCall::OnlyCharge() const noexcept {
  if (entries_.size() != 1) return nullptr;
  const Work* only = nullptr;
  for (const Work& work : works_) {
    if (work.stage == Stage::kDone) continue;
    if (only != nullptr || work.count != 1) return nullptr;
    only = &work;
  }
  return only;
}

// Charges that ask the same share their numbers.
void ScriptCall::EncodeShort() const {
  numbers_.assign({0, static_cast<double>(plain_), 0});
  struct Told {
    const Limit* limit;
    StepRequest request;
    std::size_t at;
  };
  std::array<Told, 8> told{};
  std::size_t next = 0;
  const auto numbers_of = [&](const Limit& limit, const StepRequest& request) {
    for (const Told& known : told) {
      if (known.limit == &limit && known.request.verb == request.verb &&
          known.request.cost == request.cost && known.request.wait == request.wait &&
          known.request.reserved == request.reserved) {
        return known.at;
      }
    }
    Told& place = told[next++ % told.size()];
    place = {.limit = &limit, .request = request, .at = numbers_.size() + 2 * plain_ + 1};
    AppendShort(numbers_, LevelChangeOf(limit, request));
    return place.at;
  };
  for (const Work& work : works_) {
    if (work.stage == Stage::kDone) continue;
    integers_.push_back(static_cast<std::uint16_t>(work.count));
    for (std::size_t i = work.first; i < work.first + work.count; ++i) {
      const Entry& entry = entries_[i];
      const StepRequest request = work.doomed ? AskedOnly(entry.request) : entry.request;
      integers_.push_back(keys_[entry.key].place);
      integers_.push_back(static_cast<std::uint16_t>(numbers_of(*entry.limit, request)));
    }
  }
  numbers_[0] = static_cast<double>(numbers_.size() + 2 * plain_ + 1);
}

void ScriptCall::EncodeGroup(const Work& work) const {
  const bool claims = work.stage == Stage::kReadRecord;
  const double action = claims ? 3 : work.stage == Stage::kSettle ? 2 : work.head != 0 ? 1 : 0;
  // One more, because the server's clock of expiry leaves out what is less than a millisecond, and
  // a lease can be given back until its very end.
  const auto ttl = std::chrono::ceil<std::chrono::milliseconds>(work.ttl).count() + 1;
  constexpr std::size_t kTextsBefore = 2;
  const bool has_record = work.stage == Stage::kSettle || work.head != 0;
  numbers_.insert(numbers_.end(), {action, static_cast<double>(work.count),
                                   static_cast<double>(has_record ? keys_[work.record].place : 0),
                                   static_cast<double>(std::max<std::int64_t>(1, ttl)),
                                   static_cast<double>(work.head + kTextsBefore)});
  for (std::size_t i = work.first; i < work.first + work.count; ++i) {
    const Entry& entry = entries_[i];
    const std::size_t begin = numbers_.size();
    const StateKind kind = KindOf(*entry.limit);
    if (kind == StateKind::kLog) ++logs_;
    const std::size_t text = entry.text == 0 ? 0 : entry.text + kTextsBefore;
    numbers_.insert(numbers_.end(),
                    {0, static_cast<double>(kind) + 1, static_cast<double>(keys_[entry.key].place),
                     entry.shadow ? 1.0 : 0.0, static_cast<double>(text)});
    const StepRequest request = work.doomed ? AskedOnly(entry.request) : entry.request;
    AppendNumbers(numbers_, *entry.limit, request, wall_);
    if (kind == StateKind::kBucket) {
      const auto taken_at = work.taken_at.value_or(WallTime{}).time_since_epoch();
      const double undone = entry.undone ? keys_[*entry.undone].place : 0;
      numbers_.push_back(undone);
      numbers_.push_back(
          static_cast<double>(std::chrono::floor<std::chrono::microseconds>(taken_at).count()));
    }
    numbers_[begin] = static_cast<double>(numbers_.size() - begin);
  }
}

void ScriptCall::Encode() const {
  SetPlaces();
  is_short_ = IsShort();
  integers_.clear();
  const Work* const only = is_short_ ? OnlyCharge() : nullptr;
  is_one_ = only != nullptr;
  if (is_one_) {
    const Entry& entry = entries_[only->first];
    numbers_.clear();
    AppendShort(numbers_, LevelChangeOf(*entry.limit,
                                        only->doomed ? AskedOnly(entry.request) : entry.request));
    return;
  }
  if (is_short_) return EncodeShort();
  numbers_.assign({4, static_cast<double>(plain_), 1});
  for (const Work& work : works_) {
    // A record that is only read is among the plain keys.
    if (work.is_asked()) EncodeGroup(work);
  }
}

void ScriptCall::Write(ByteBuffer& out, Form form) const {
  Encode();
  const std::size_t arguments = is_one_ ? 1 : 2 + texts_.size();
  CommandWriter writer(out, 3 + keys_.size() + arguments);
  writer.Word(form == Form::kText ? "EVAL" : "EVALSHA");
  writer.Word(form == Form::kText ? ScriptText() : ScriptDigest());
  writer.Number(keys_.size());
  for (const std::size_t key : order_) writer.Word(TextOf(keys_[key]));
  if (is_one_) return writer.Word(BytesOf(numbers_));
  std::string shape;
  shape.reserve(1 + numbers_.size() + 2 * plain_ + integers_.size());
  // Of the numbers three come first.
  constexpr std::size_t kFirst = 3;
  const std::size_t scratch = is_short_ ? plain_ : 0;
  shape.append("<ddd").append(2 * scratch, 'b').append(numbers_.size() - kFirst, 'd');
  shape.append(integers_.size(), 'H');
  std::string numbers(BytesOf(numbers_).substr(0, kFirst * sizeof(double)));
  numbers.append(scratch, '\xff').append(scratch, '\0');
  numbers.append(BytesOf(numbers_).substr(kFirst * sizeof(double)));

  writer.Word(shape);
  writer.Word(numbers, BytesOf(integers_));
  for (const std::string& text : texts_) writer.Word(text);
}

}  // namespace weir::redis
