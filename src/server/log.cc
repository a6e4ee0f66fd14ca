#include "server/log.h"

#include <algorithm>
#include <string>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace weir {

struct Log::Sink {
  spdlog::logger logger{"weir", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

Log::Log() : sink_(std::make_unique<Sink>()) {
  sink_->logger.set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
}
Log::~Log() = default;

void Log::Write(Level level, std::string_view text) const {
  constexpr std::string_view kEnd = "\n";
  const auto its_level = level == Level::kInfo      ? spdlog::level::info
                         : level == Level::kWarning ? spdlog::level::warn
                                                    : spdlog::level::err;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kEnd), text.size());
    sink_->logger.log(its_level, std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + kEnd.size(), text.size()));
  }
  sink_->logger.flush();
}

}  // namespace weir
