#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"

namespace outrigger::training {

/// What a run's progress line shows. Absent values are left out of the line.
struct Progress {
  double epoch = 0;   // epochs done, with the part of the current one
  double epochs = 0;  // 0: the job counts steps alone
  uint64_t step = 0;
  uint64_t total_steps = 0;
  std::optional<double> images_per_second;
  std::optional<double> loss;
  std::optional<double> accuracy;  // 0 … 1
  std::optional<double> stall_percent;
  std::string stall_cause;  // "Decode"; empty: none named
  std::string plan;         // "cut layer1, share 75%"
  std::optional<Duration> time_left;
};

/// "850ms", "12s", "3m05s", "2h07m", "4d03h": two units at most, rounded to the smaller.
std::string format_duration(Duration duration);

/// "7.3", "512", "12.4k", "3.1M": three digits and a little.
std::string format_count(double value);

/// One line of at most `width` columns (0: as long as it gets), most important first:
///   epoch 3/40 | step 1200/26000 | 512 images/s | loss 0.234 | accuracy 93.1% | stall 3% (Decode)
///   | cut layer1 | 12m30s left
/// Where it is too long the least important parts go: plan, stall's cause, epoch, stall, accuracy,
/// speed; then it is cut.
std::string format_progress(const Progress& progress, int width = 0);

/// Columns of the terminal behind `stream`; nothing where it is none, or says nothing of its size.
std::optional<int> terminal_columns(std::FILE* stream);

struct ProgressLineOptions {
  std::FILE* stream = stderr;                             // outlives the line
  std::optional<int> columns = terminal_columns(stderr);  // of the terminal; absent: plain lines
  Duration redraw =
      std::chrono::milliseconds(200);  // least time between two drawings on a terminal
  Duration plain_interval = std::chrono::seconds(10);  // and between two plain lines
};

/// The live line of a run. On a terminal one line that is drawn over and over, below what is
/// logged; elsewhere a line now and then, so that a log stays short. Cheap to call after every
/// step. Not thread-safe.
class ProgressLine {
 public:
  /// `clock` outlives the line.
  ProgressLine(const Clock& clock, ProgressLineOptions options = {});
  /// Ends the drawn line, so that what follows starts on its own.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Draws if it is time to.
  void show(const Progress& progress);
  /// Draws in any case and ends the line: at the end of a run.
  void finish(const Progress& progress);

 private:
  using DrawLine = void(std::FILE* terminal, std::string_view text);
  void draw(const Progress& progress, DrawLine* draw_line);

  const Clock& clock_;
  ProgressLineOptions options_;
  std::optional<TimePoint> drawn_at_;
};

}  // namespace outrigger::training
