#include "common/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "common/error.h"

namespace outrigger::log {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "outrigger", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%L%$ %n | %v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum translate(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void set_process_name(const std::string& name) {
  logger().set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%L%$ " + name + " | %v");
}

void set_level(Level level) { logger().set_level(translate(level)); }

Level parse_level(std::string_view text) {
  if (text == "debug") return Level::kDebug;
  if (text == "info") return Level::kInfo;
  if (text == "warning") return Level::kWarning;
  if (text == "error") return Level::kError;
  throw InvalidInput("log level '" + std::string(text) +
                     "': allowed are debug, info, warning, error");
}

bool is_on(Level level) { return logger().should_log(translate(level)); }

void write(Level level, std::string_view text) { logger().log(translate(level), text); }

}  // namespace outrigger::log
