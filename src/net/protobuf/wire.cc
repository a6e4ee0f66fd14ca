#include "net/protobuf/wire.h"

#include <bit>
#include <cstring>

namespace weir {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

bool ProtobufReader::ReadVarint(std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (p_ == end_) return Broken();
    const auto byte = static_cast<unsigned char>(*p_++);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  return Broken();
}

bool ProtobufReader::ReadTag() noexcept {
  const char* const begin = p_;
  std::uint64_t number = 0;
  if (!ReadVarint(number)) return false;
  constexpr std::ptrdiff_t kMostTagBytes = 5;
  const auto tag =
      static_cast<std::uint32_t>(number);  // As protobuf does: the rest is not looked at.
  if (p_ - begin > kMostTagBytes || tag < 8) return Broken();
  field_ = tag >> 3;
  const auto type = static_cast<std::uint8_t>(tag & 7);
  if (type > static_cast<std::uint8_t>(WireType::kFixed32)) return Broken();
  type_ = static_cast<WireType>(type);
  return true;
}

bool ProtobufReader::ReadFixed(std::size_t size) noexcept {
  if (static_cast<std::size_t>(end_ - p_) < size) return Broken();
  number_ = 0;
  std::memcpy(&number_, p_, size);
  p_ += size;
  return true;
}

bool ProtobufReader::ReadValue() noexcept {
  switch (type_) {
    case WireType::kVarint:
      return ReadVarint(number_);
    case WireType::kFixed64:
      return ReadFixed(8);
    case WireType::kFixed32:
      return ReadFixed(4);
    case WireType::kBytes: {
      std::uint64_t size = 0;
      if (!ReadVarint(size)) return false;
      if (size > static_cast<std::uint64_t>(end_ - p_)) return Broken();
      bytes_ = {p_, static_cast<std::size_t>(size)};
      p_ += size;
      return true;
    }
    case WireType::kStartGroup:
      return SkipGroup();
    default:  // The end of a group that was not begun.
      return Broken();
  }
}

// To its end, with all groups in it; every end must have the number of its beginning.
bool ProtobufReader::SkipGroup() noexcept {
  const std::uint32_t outermost = field_;
  std::uint32_t open[kMostGroups];
  int depth = 0;
  open[depth++] = outermost;
  while (depth > 0) {
    if (!ReadTag()) return Broken();
    if (type_ == WireType::kStartGroup) {
      if (depth == kMostGroups) return Broken();
      open[depth++] = field_;
    } else if (type_ == WireType::kEndGroup) {
      if (open[--depth] != field_) return Broken();
    } else if (!ReadValue()) {
      return false;
    }
  }
  field_ = outermost;
  type_ = WireType::kStartGroup;
  return true;
}

bool ProtobufReader::Next() noexcept { return p_ != end_ && ReadTag() && ReadValue(); }

namespace {

// How many bytes the character has that begins here; 0 if that is none. Nothing overlong, no
// surrogates, nothing above U+10FFFF.
std::size_t CharacterSize(const unsigned char* p, std::size_t left) noexcept {
  const auto is_next = [&](std::size_t at, unsigned char least = 0x80, unsigned char most = 0xbf) {
    return at < left && p[at] >= least && p[at] <= most;
  };
  const unsigned char first = p[0];
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return is_next(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool second = is_next(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && is_next(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool second = is_next(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && is_next(2) && is_next(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool IsUtf8(std::string_view text) noexcept {
  constexpr std::uint64_t kNotAscii = 0x8080'8080'8080'8080U;
  const char* p = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    std::uint64_t word = 0;
    const std::size_t taken = left < sizeof(word) ? left : sizeof(word);
    std::memcpy(&word, p, taken);
    if ((word & kNotAscii) == 0) {
      p += taken;
      left -= taken;
      continue;
    }
    const std::size_t size = CharacterSize(reinterpret_cast<const unsigned char*>(p), left);
    if (size == 0) return false;
    p += size;
    left -= size;
  }
  return true;
}

void ProtobufWriter::WantedNumber(std::uint32_t field, std::uint64_t value) {
  char* p = out_.Room(2 * kMostVarintBytes);
  p = PutTag(p, field, WireType::kVarint);
  out_.WroteUpTo(PutVarint(p, value));
}

void ProtobufWriter::WantedBytes(std::uint32_t field, std::string_view bytes) {
  char* p = out_.Room(2 * kMostVarintBytes + bytes.size());
  p = PutTag(p, field, WireType::kBytes);
  p = PutVarint(p, bytes.size());
  if (!bytes.empty()) std::memcpy(p, bytes.data(), bytes.size());
  out_.WroteUpTo(p + bytes.size());
}

// Leaves one byte for its length, which does for most.
ProtobufWriter::Inner ProtobufWriter::Begin(std::uint32_t field) {
  char* const p = PutTag(out_.Room(2 * kMostVarintBytes), field, WireType::kBytes);
  out_.WroteUpTo(p + 1);
  return static_cast<Inner>(out_.size());
}

void ProtobufWriter::End(Inner inner) {
  const auto begin = static_cast<std::size_t>(inner);
  const std::size_t size = out_.size() - begin;
  char length[kMostVarintBytes];
  const auto length_size = static_cast<std::size_t>(PutVarint(length, size) - length);
  if (length_size > 1) {
    out_.Room(length_size - 1);
    out_.Wrote(length_size - 1);
    char* const from = out_.bytes().data() + begin;
    std::memmove(from + length_size - 1, from, size);
  }
  std::memcpy(out_.bytes().data() + begin - 1, length, length_size);
}

}  // namespace weir
