#include "server/log.h"

#include <algorithm>
#include <array>
#include <string>

#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace weir {
namespace {

constexpr std::array<spdlog::level::level_enum, 3> kLevels = {
    spdlog::level::info, spdlog::level::warn, spdlog::level::err};

std::string AsText(std::string_view text, Log::Fields fields) {
  std::string line(text);
  for (const Log::Field& field : fields) {
    line.append(" ").append(field.name).append("=").append(field.value);
  }
  return line;
}

// The members behind time and level, which the pattern has.
std::string AsMembers(std::string_view text, Log::Fields fields) {
  nlohmann::ordered_json members = {{"text", text}};
  for (const Log::Field& field : fields) members[std::string(field.name)] = field.value;
  const std::string object =
      members.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return object.substr(1);  // Without the brace that is there already.
}

}  // namespace

struct Log::Sink {
  spdlog::logger logger{"weir", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  Format format;
};

Log::Log(Format format) : sink_(std::make_unique<Sink>(Sink{.format = format})) {
  sink_->logger.set_pattern(format == Format::kText
                                ? "%Y-%m-%dT%H:%M:%S.%eZ %l %v"
                                : R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v)",
                            spdlog::pattern_time_type::utc);
}
Log::~Log() = default;

void Log::Write(Level level, std::string_view text, Fields fields) const {
  constexpr std::string_view kEnd = "\n";
  const auto its_level = kLevels[static_cast<std::size_t>(level)];
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kEnd), text.size());
    const std::string_view line = text.substr(0, end);
    sink_->logger.log(
        its_level, sink_->format == Format::kText ? AsText(line, fields) : AsMembers(line, fields));
    text.remove_prefix(std::min(end + kEnd.size(), text.size()));
  }
  sink_->logger.flush();
}

}  // namespace weir
