// For tests: a log from text, and what comes of it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/log/log_reader.h"

namespace weir::lab {

// A request with texts of its own, so that it can be kept.
struct KeptRecord {
  WallTime time{};
  std::uint64_t line = 0;
  std::uint32_t file = 0;
  int status = 0;
  std::int64_t cost = 1;
  std::string ip{}, user{}, api_key{}, org{}, tier{}, method{}, path{}, host{}, user_agent{};
  std::vector<std::string> wanted{};

  bool operator==(const KeptRecord&) const = default;
};

inline KeptRecord Keep(const LogRecord& record) {
  return {.time = record.time,
          .line = record.line,
          .file = record.file,
          .status = record.status,
          .cost = record.cost,
          .ip = std::string(record.ip),
          .user = std::string(record.user),
          .api_key = std::string(record.api_key),
          .org = std::string(record.org),
          .tier = std::string(record.tier),
          .method = std::string(record.method),
          .path = std::string(record.path),
          .host = std::string(record.host),
          .user_agent = std::string(record.user_agent),
          .wanted = {record.wanted.begin(), record.wanted.end()}};
}

struct WholeLog {
  std::vector<KeptRecord> requests{};
  std::vector<LogCounts> counts{};
  std::string error{};
};

inline WholeLog ReadLog(const LogSettings& settings, const std::string& standard_input = "") {
  WholeLog log;
  std::istringstream in(standard_input);
  auto reader = LogReader::Open(settings, in);
  if (!reader) {
    log.error = reader.error().message;
    return log;
  }
  for (auto batch = (*reader)->Next(); !batch.empty(); batch = (*reader)->Next()) {
    for (const LogRecord& record : batch) log.requests.push_back(Keep(record));
  }
  log.counts = (*reader)->counts();
  return log;
}

// The text as standard input.
inline WholeLog ReadText(const std::string& text, LogSettings settings = {}) {
  settings.files = {"-"};
  return ReadLog(settings, text);
}

inline WallTime At(std::int64_t seconds, std::int64_t nanoseconds = 0) {
  return WallTime(std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanoseconds));
}

}  // namespace weir::lab
