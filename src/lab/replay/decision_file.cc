#include "lab/replay/decision_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

namespace weir::lab {
namespace {

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// A file that is gone when it is closed. -1 with errno if there can be none.
int OpenNameless(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) {
    return descriptor;
  }
  std::string name = folder + "/.weir-decisions-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

void Append(std::string& text, std::int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  text.append(digits, end);
}

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<std::unique_ptr<DecisionFile>> DecisionFile::Create(const std::string& path,
                                                           std::vector<std::string> logs) {
  const auto wrong = [&](const std::string& what) {
    return std::unexpected(Error{
        ErrorCode::kInternal, path + ": " + what + ": " + std::generic_category().message(errno)});
  };
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return wrong("it cannot be written");
  std::unique_ptr<DecisionFile> file(new DecisionFile(path, std::move(logs), descriptor));
  // What is no file (a pipe) may stand where no other can be made.
  for (Spill& spill : file->spills_) {
    spill.descriptor = OpenNameless(FolderOf(path));
    if (spill.descriptor < 0) {
      std::error_code error;
      const std::filesystem::path other = std::filesystem::temp_directory_path(error);
      if (!error) spill.descriptor = OpenNameless(other.string());
    }
    if (spill.descriptor < 0) return wrong("nothing can be kept beside it meanwhile");
  }
  return file;
}

DecisionFile::DecisionFile(std::string path, std::vector<std::string> logs, int descriptor)
    : path_(std::move(path)),
      logs_(std::move(logs)),
      descriptor_(descriptor),
      spills_(logs_.size()) {
  for (Spill& spill : spills_) spill.latest.resize(kLatest);
}

DecisionFile::~DecisionFile() {
  ::close(descriptor_);
  for (const Spill& spill : spills_) {
    if (spill.descriptor >= 0) ::close(spill.descriptor);
  }
}

void DecisionFile::Add(std::uint32_t log, std::uint64_t line, const Decision& decision,
                       std::uint32_t rule) {
  Spill& spill = spills_[log];
  const Entry entry{
      .remaining = decision.remaining,
      .retry_after_ms = decision.retry_after == kNever
                            ? -1
                            : RoundUpTo<std::chrono::milliseconds>(decision.retry_after),
      .rule = rule,
      .is_there = 1,
      .allowed = decision.allowed,
      .unused = 0};
  if (line < spill.first) {  // Far out of order: it goes by itself.
    Put(spill.descriptor, &entry, sizeof entry,
        static_cast<std::int64_t>((line - 1) * sizeof entry));
    return;
  }
  while (line >= spill.first + kLatest) Flush(spill);
  spill.latest[line - spill.first] = entry;
}

// Half of them, so that lines that come a little later still find their place.
void DecisionFile::Flush(Spill& spill) {
  constexpr std::size_t kHalf = kLatest / 2;
  Put(spill.descriptor, spill.latest.data(), kHalf * sizeof(Entry),
      static_cast<std::int64_t>((spill.first - 1) * sizeof(Entry)));
  std::memmove(spill.latest.data(), spill.latest.data() + kHalf, kHalf * sizeof(Entry));
  std::memset(spill.latest.data() + kHalf, 0, kHalf * sizeof(Entry));
  spill.first += kHalf;
}

void DecisionFile::Put(int descriptor, const void* bytes, std::size_t size, std::int64_t offset) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0 && error_.empty()) {
    const ssize_t put = ::pwrite(descriptor, at, size, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      error_ = std::generic_category().message(errno);
      return;
    }
    at += put;
    size -= static_cast<std::size_t>(put);
    offset += put;
  }
}

Result<void> DecisionFile::Finish(const std::vector<std::string>& rules) {
  std::vector<std::string> quoted;
  quoted.reserve(rules.size());
  for (const std::string& rule : rules) quoted.push_back(Quoted(rule));
  std::string text;
  for (std::size_t log = 0; log < spills_.size(); ++log) {
    Flush(spills_[log]);
    Flush(spills_[log]);
    WriteLog(log, quoted, text);
  }
  Write(text);
  if (error_.empty()) return {};
  return std::unexpected(
      Error{ErrorCode::kInternal, path_ + ": not all decisions could be written: " + error_});
}

void DecisionFile::WriteLog(std::size_t log, const std::vector<std::string>& rules,
                            std::string& text) {
  const std::string file = logs_.size() > 1 ? "\"file\":" + Quoted(logs_[log]) + "," : "";
  std::vector<Entry> entries(kLatest);
  std::uint64_t line = 1;
  for (std::int64_t offset = 0; error_.empty();) {
    const ssize_t got =
        ::pread(spills_[log].descriptor, entries.data(), entries.size() * sizeof(Entry), offset);
    if (got < 0) error_ = std::generic_category().message(errno);
    if (got <= 0) return;
    const std::size_t count = static_cast<std::size_t>(got) / sizeof(Entry);
    offset += static_cast<std::int64_t>(count * sizeof(Entry));
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i, ++line) {
      const Entry& entry = entries[i];
      if (entry.is_there == 0) continue;
      text += '{';
      text += file;
      text += "\"line\":";
      Append(text, static_cast<std::int64_t>(line));
      text += entry.allowed != 0 ? ",\"allowed\":true,\"rule\":" : ",\"allowed\":false,\"rule\":";
      if (entry.rule == kNoRule) {
        text += "null,\"remaining\":null";
      } else {
        text += rules[entry.rule];
        text += ",\"remaining\":";
        Append(text, entry.remaining);
      }
      text += ",\"retry_after_ms\":";
      if (entry.retry_after_ms < 0) {
        text += "null";
      } else {
        Append(text, entry.retry_after_ms);
      }
      text += "}\n";
      if (text.size() > (std::size_t{1} << 18)) Write(text);
    }
  }
}

void DecisionFile::Write(std::string& text) {
  std::string_view left = text;
  while (!left.empty() && error_.empty()) {
    const ssize_t put = ::write(descriptor_, left.data(), left.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      error_ = std::generic_category().message(errno);
      return;
    }
    left.remove_prefix(static_cast<std::size_t>(put));
  }
  text.clear();
}

}  // namespace weir::lab
