#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

/// Logging to standard error: one line an event, `time level process | text`. Further lines of a
/// text are indented and its control characters written as escapes, so that no path or name from
/// outside can look like an event or move the cursor. What a stream does not take is lost: nothing
/// here throws for it. Thread-safe.
namespace outrigger::log {

enum class Level { kDebug, kInfo, kWarning, kError };

/// Who speaks ("server", "worker-3"); call once, early in main.
void set_process_name(const std::string& name);
void set_level(Level level);
/// "debug", "info", "warning" or "error"; throws InvalidInput otherwise.
Level parse_level(std::string_view text);

/// Whether lines of that level are written; others need not be made.
bool is_on(Level level);
void write(Level level, std::string_view text);

/// Draws `text` on a terminal, over what was drawn before: the live line below the log. What is
/// logged next takes it away first. One for the process, whose terminal must be open until it ends.
void draw_line(std::FILE* terminal, std::string_view text);
/// Draws `text` so and ends the line, with no event of the log in between.
void draw_last_line(std::FILE* terminal, std::string_view text);
/// The drawn line, if it is still there, stays, and what follows starts on its own.
void end_line();

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on(Level::kDebug)) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on(Level::kWarning))
    write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on(Level::kError)) write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace outrigger::log
