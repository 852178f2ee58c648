#pragma once

#include <span>
#include <string>
#include <vector>

/// Pictures as SVG text that stands in a page by itself: no scripts, fonts or files.
namespace outrigger::cli {

struct Series {
  std::string name;
  std::string color;  // as CSS has it
  std::vector<double> x;
  std::vector<double> y;
  bool points = false;  // dots instead of a line
};

struct ChartOptions {
  std::string label;  // what the picture shows, for those who do not see it
  std::string x_label;
  std::string unit;  // behind the numbers at the left
  bool from_zero = true;
};

/// Lines over one scale, whose x are whole numbers or means of them; a series of one point is a
/// dot. Series without points are left out.
std::string line_chart(const ChartOptions& options, std::span<const Series> series);
/// Areas on top of each other, or bars where there is one x; all series have the same x.
std::string stacked_chart(const ChartOptions& options, std::span<const Series> series);

/// A stretch of a row, as plans follow each other.
struct Stretch {
  double from = 0;
  double to = 0;
  std::string text;
  std::string color;
};
std::string timeline(const ChartOptions& options, std::span<const Stretch> stretches);

/// The text with what HTML gives a meaning to written out.
std::string escaped(const std::string& text);

/// Means of so many neighbours that at most `most` points are left.
Series thinned(const Series& series, size_t most);

}  // namespace outrigger::cli
