#include "lab/log/line_parser.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "lab/log/log_time.h"

namespace weir::lab {
namespace {

using Kind = LineResult::Kind;

}  // namespace

char* Texts::Room(std::size_t bytes) {
  if (bytes > kPieceBytes / 4) {
    large_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    return large_.back().get();
  }
  if (piece_ < pieces_.size() && used_ + bytes > kPieceBytes) {
    ++piece_;
    used_ = 0;
  }
  if (piece_ == pieces_.size()) {
    pieces_.push_back(std::make_unique_for_overwrite<char[]>(kPieceBytes));
  }
  char* const room = pieces_[piece_].get() + used_;
  used_ += bytes;
  return room;
}

std::string_view Texts::Keep(std::string_view text) {
  char* const room = Room(text.size());
  std::memcpy(room, text.data(), text.size());
  return {room, text.size()};
}

std::span<std::string_view> Texts::List(std::size_t size) {
  if (size == 0) return {};
  constexpr std::size_t kAlign = alignof(std::string_view);
  char* room = Room(size * sizeof(std::string_view) + kAlign);
  room += (kAlign - reinterpret_cast<std::uintptr_t>(room) % kAlign) % kAlign;
  auto* const first = reinterpret_cast<std::string_view*>(room);
  std::uninitialized_default_construct_n(first, size);
  return {first, size};
}

void Texts::Clear() noexcept {
  large_.clear();
  piece_ = 0;
  used_ = 0;
}

std::string Printable(std::string_view text) {
  constexpr std::size_t kShownBytes = 120;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  for (const char c : text.substr(0, kShownBytes)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      shown += "\\x";
      shown += kDigits[byte >> 4];
      shown += kDigits[byte & 15];
    }
  }
  if (text.size() > kShownBytes) shown += "...";
  return shown;
}

std::string ListOfColumns(const std::vector<std::string>& columns) {
  std::string all;
  for (const std::string& name : columns) all += (all.empty() ? "" : ", ") + Printable(name);
  return all;
}

std::string NoTimeAmong(const std::vector<std::string>& columns) {
  return "no column says the time; there are " + ListOfColumns(columns) +
         ": name it with --column time=COLUMN";
}

bool SaysNothing(std::string_view line) noexcept {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos || line[first] == '#';
}

void SplitRequestLine(std::string_view line, LogRecord& record) noexcept {
  std::size_t method = 0;
  while (method < line.size() && line[method] >= 'A' && line[method] <= 'Z') ++method;
  if (method == 0 || method + 1 >= line.size() || line[method] != ' ') return;
  std::string_view target = line.substr(method + 1);
  // A path may hold blanks that nobody encoded; the protocol does not.
  if (const std::size_t end = target.rfind(" HTTP/"); end != std::string_view::npos) {
    target = target.substr(0, end);
  }
  if (target.empty()) return;
  record.method = line.substr(0, method);
  if (target[0] == '/' || target == "*") {
    record.path = target;
    return;
  }
  const std::size_t scheme = target.find("://");
  constexpr std::size_t kLongestScheme = 8;  // No scheme at all is further away than any.
  if (scheme > kLongestScheme) {
    // What CONNECT names is a host.
    if (record.method == "CONNECT" && record.host.empty()) record.host = target;
    if (record.method != "CONNECT") record.path = target;
    return;
  }
  const std::string_view rest = target.substr(scheme + 3);
  const std::size_t path = rest.find_first_of("/?");
  if (record.host.empty()) record.host = rest.substr(0, path);
  record.path = path == std::string_view::npos ? std::string_view("/") : rest.substr(path);
}

std::string_view WithoutPort(std::string_view address) noexcept {
  if (!address.empty() && address[0] == '[') {
    const std::size_t end = address.find(']');
    return end == std::string_view::npos ? address : address.substr(1, end - 1);
  }
  const std::size_t colon = address.find(':');
  const bool has_port =
      colon != std::string_view::npos && address.find(':', colon + 1) == std::string_view::npos;
  return has_port ? address.substr(0, colon) : address;
}

std::string_view Unescape(std::string_view text, Texts& texts) {
  if (!text.contains('\\')) return text;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  char* const room = texts.Room(text.size());
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      const char next = text[i + 1];
      if (next == 'x' && i + 3 < text.size() && digit(text[i + 2]) >= 0 &&
          digit(text[i + 3]) >= 0) {
        c = static_cast<char>(digit(text[i + 2]) * 16 + digit(text[i + 3]));
        i += 3;
      } else if (next == '"' || next == '\\') {
        c = next;
        ++i;
      } else if (next == 'n' || next == 't' || next == 'r') {
        c = next == 'n' ? '\n' : (next == 't' ? '\t' : '\r');
        ++i;
      }
    }
    room[size++] = c;
  }
  return {room, size};
}

void RecordBuilder::Begin(LogRecord& record, std::size_t wanted, Texts& texts) {
  record_ = &record;
  record = LogRecord();
  wanted_ = texts.List(wanted);
  record.wanted = wanted_;
  ranks_.fill(kNotSaid);
  values_.fill({});
}

void RecordBuilder::Take(const ColumnUse& use, std::string_view value) {
  if (IsAbsent(value)) return;
  for (const std::uint32_t place : use.wanted) wanted_[place] = value;
  for (const ColumnUse::Says& says : use.fields) {
    const auto field = static_cast<std::size_t>(says.field);
    if (says.rank >= ranks_[field]) continue;
    ranks_[field] = says.rank;
    values_[field] = value;
  }
}

LineResult RecordBuilder::Finish() {
  const std::string_view time = Of(Field::kTime);
  if (time.empty()) return {.kind = Kind::kUnparsed, .why = "no time", .lacks_time_column = true};
  const std::optional<WallTime> parsed = ParseTime(time);
  if (!parsed) return {.kind = Kind::kUnparsed, .why = "the time cannot be read"};
  record_->time = *parsed;
  std::string_view ip = Of(Field::kIp);
  // Of a forwarding list the last is what the nearest proxy saw itself.
  if (const std::size_t comma = ip.rfind(','); comma != std::string_view::npos) {
    ip = ip.substr(std::min(ip.find_first_not_of(' ', comma + 1), ip.size()));
  }
  record_->ip = WithoutPort(ip);
  record_->user = Of(Field::kUser);
  record_->api_key = Of(Field::kApiKey);
  record_->org = Of(Field::kOrg);
  record_->tier = Of(Field::kTier);
  record_->host = Of(Field::kHost);
  record_->user_agent = Of(Field::kUserAgent);
  if (!Of(Field::kRequestLine).empty()) SplitRequestLine(Of(Field::kRequestLine), *record_);
  if (!Of(Field::kMethod).empty()) record_->method = Of(Field::kMethod);
  if (const std::string_view path = Of(Field::kPath); !path.empty()) {
    const std::size_t scheme = path.find("://");
    record_->path = path;
    if (path[0] != '/' && scheme != std::string_view::npos && scheme <= 8) {
      const std::string_view rest = path.substr(scheme + 3);
      const std::size_t from = rest.find_first_of("/?");
      if (record_->host.empty()) record_->host = rest.substr(0, from);
      record_->path = from == std::string_view::npos ? std::string_view("/") : rest.substr(from);
    }
  }
  // All of it: 1e3 is not 1, and 2.5 is not 2.
  const auto number = [](std::string_view text, auto& value) {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc() && read.ptr == end;
  };
  if (!number(Of(Field::kStatus), record_->status)) record_->status = 0;
  if (const std::string_view cost = Of(Field::kCost); !cost.empty()) {
    if (!number(cost, record_->cost) || record_->cost < 0) {
      return {.kind = Kind::kUnparsed, .why = "the cost is no whole number"};
    }
  }
  return {.kind = Kind::kRequest};
}

}  // namespace weir::lab
