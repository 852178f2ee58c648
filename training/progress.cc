#include "training/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/log.h"

namespace outrigger::training {
namespace {

/// A piece of the line; the highest `goes` is left out first, 0 never.
struct Part {
  std::string text;
  int goes = 0;
};

std::string join(const std::vector<Part>& parts) {
  std::string line;
  for (const Part& part : parts) {
    if (!line.empty()) line += " | ";
    line += part.text;
  }
  return line;
}

std::vector<Part> parts_of(const Progress& p, bool with_cause) {
  std::vector<Part> parts;
  const auto add = [&](int goes, std::string text) { parts.push_back({std::move(text), goes}); };
  if (p.epochs > 0) {
    const double current = std::min(std::floor(p.epoch) + 1, std::ceil(p.epochs));
    add(4, fmt::format("epoch {:.0f}/{:.0f}", current, std::ceil(p.epochs)));
  }
  add(0, p.total_steps > 0 ? fmt::format("step {}/{}", p.step, p.total_steps)
                           : fmt::format("step {}", p.step));
  if (p.images_per_second) add(1, format_count(*p.images_per_second) + " images/s");
  if (p.loss) add(0, fmt::format("loss {:.3g}", *p.loss));
  if (p.accuracy) add(2, fmt::format("accuracy {:.1f}%", *p.accuracy * 100));
  if (p.stall_percent) {
    const std::string cause =
        with_cause && !p.stall_cause.empty() ? " (" + p.stall_cause + ")" : "";
    add(3, fmt::format("stall {:.0f}%{}", *p.stall_percent, cause));
  }
  if (!p.plan.empty()) add(5, p.plan);
  if (p.time_left) add(0, format_duration(*p.time_left) + " left");
  return parts;
}

}  // namespace

std::string format_duration(Duration duration) {
  using std::chrono::duration_cast;
  const int64_t milliseconds =
      std::max<int64_t>(0, duration_cast<std::chrono::milliseconds>(duration).count());
  if (milliseconds < 1000) return fmt::format("{}ms", milliseconds);
  const int64_t seconds = (milliseconds + 500) / 1000;
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  const int64_t minutes = (seconds + 30) / 60;
  if (minutes < 24 * 60) return fmt::format("{}h{:02}m", minutes / 60, minutes % 60);
  const int64_t hours = (minutes + 30) / 60;
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

std::string format_count(double value) {
  constexpr std::array<const char*, 4> kUnits = {"", "k", "M", "G"};
  size_t unit = 0;
  while (std::abs(value) >= (unit == 0 ? 9999.5 : 999.5) && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const bool tenths = std::abs(value) < (unit == 0 ? 9.95 : 99.95) && value != 0;
  return tenths ? fmt::format("{:.1f}{}", value, kUnits[unit])
                : fmt::format("{:.0f}{}", value, kUnits[unit]);
}

std::string format_progress(const Progress& progress, int width) {
  std::vector<Part> parts = parts_of(progress, true);
  const auto too_long = [&] {
    return width > 0 && join(parts).size() > static_cast<size_t>(width);
  };
  const auto leave_out = [&](int goes) {
    std::erase_if(parts, [&](const Part& part) { return part.goes == goes; });
  };
  if (too_long()) leave_out(5);
  if (too_long()) {
    parts = parts_of(progress, false);
    leave_out(5);
  }
  for (int goes = 4; goes > 0 && too_long(); --goes) leave_out(goes);
  std::string line = join(parts);
  if (width > 0 && line.size() > static_cast<size_t>(width))
    line.resize(static_cast<size_t>(width));
  return line;
}

std::optional<int> terminal_columns(std::FILE* stream) {
  const int fd = ::fileno(stream);
  winsize size{};
  if (fd < 0 || ::isatty(fd) != 1 || ::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return std::nullopt;
  return size.ws_col;
}

ProgressLine::ProgressLine(const Clock& clock, ProgressLineOptions options)
    : clock_(clock), options_(options) {}

ProgressLine::~ProgressLine() { log::end_line(); }

void ProgressLine::show(const Progress& progress) {
  const Duration least = options_.columns ? options_.redraw : options_.plain_interval;
  const TimePoint now = clock_.now();
  if (drawn_at_ && now - *drawn_at_ < least) return;
  drawn_at_ = now;
  draw(progress, log::draw_line);
}

void ProgressLine::finish(const Progress& progress) { draw(progress, log::draw_last_line); }

void ProgressLine::draw(const Progress& progress, DrawLine* draw_line) {
  if (options_.columns) {
    // The last column stays free: a full line would make some terminals wrap.
    draw_line(options_.stream, format_progress(progress, std::max(1, *options_.columns - 1)));
  } else {
    // Not with fmt::print, which throws where the stream takes less.
    std::fputs((format_progress(progress) + "\n").c_str(), options_.stream);
    std::fflush(options_.stream);
  }
}

}  // namespace outrigger::training
