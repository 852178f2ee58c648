#include "common/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>

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

struct DrawnLine {
  std::mutex mutex;               // also held while a line of the log is written
  std::FILE* terminal = nullptr;  // null: nothing is drawn
};

DrawnLine& drawn_line() {
  static DrawnLine instance;
  return instance;
}

/// A terminal that is gone takes nothing, and whoever logs goes on.
void put(std::FILE* terminal, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), terminal);
  std::fflush(terminal);
}

std::string drawn_text(std::string_view text) { return fmt::format("\r{}\x1b[K", text); }

void finish(DrawnLine& drawn, std::string_view ending) {
  if (std::FILE* terminal = std::exchange(drawn.terminal, nullptr)) put(terminal, ending);
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

constexpr std::string_view kIndent = "  ";

bool is_control(unsigned char letter) {
  constexpr unsigned char kDelete = 0x7f;
  return (letter < ' ' && letter != '\t' && letter != '\n') || letter == kDelete;
}

/// Those of Latin-1, in UTF-8: some terminals obey them as they do ESC.
bool begins_c1(std::string_view text) {
  return text.size() > 1 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0;
}

std::string harmless(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const auto letter = static_cast<unsigned char>(text[i]);
    if (begins_c1(rest)) {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++i]));
    } else if (is_control(letter)) {
      shown += fmt::format("\\x{:02x}", letter);
    } else {
      shown += text[i];
      if (letter == '\n' && !rest.substr(1).starts_with(kIndent)) shown += kIndent;
    }
  }
  return shown;
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

void write(Level level, std::string_view text) {
  if (!is_on(level)) return;
  DrawnLine& drawn = drawn_line();
  const std::scoped_lock lock(drawn.mutex);
  finish(drawn, "\r\x1b[K");
  logger().log(translate(level), harmless(text));
}

void draw_line(std::FILE* terminal, std::string_view text) {
  DrawnLine& drawn = drawn_line();
  const std::scoped_lock lock(drawn.mutex);
  drawn.terminal = terminal;
  put(terminal, drawn_text(text));
}

void draw_last_line(std::FILE* terminal, std::string_view text) {
  DrawnLine& drawn = drawn_line();
  const std::scoped_lock lock(drawn.mutex);
  drawn.terminal = nullptr;
  put(terminal, drawn_text(text) + "\n");
}

void end_line() {
  DrawnLine& drawn = drawn_line();
  const std::scoped_lock lock(drawn.mutex);
  finish(drawn, "\n");
}

}  // namespace outrigger::log
