#pragma once

#include <string>
#include <vector>

namespace outrigger::bench {

/// Prints a row for each figure as it comes, beside what it must reach, as bench/figures.py does.
class Table {
 public:
  Table();
  /// A row with nothing to reach.
  void figure(const std::string& what, const std::string& figure);
  void judge(const std::string& what, const std::string& figure, const std::string& target,
             bool met);
  /// Exit status: 0, or 3 where a target was missed.
  int status() const { return missed_ ? 3 : 0; }

 private:
  bool missed_ = false;
};

/// "12.3 s"; `digits` behind the point.
std::string number(double value, int digits, const std::string& unit);
double median(std::vector<double> values);
/// Of ours[i] / theirs[i]: what disturbs a round disturbs both.
double median_ratio(const std::vector<double>& ours, const std::vector<double>& theirs);

}  // namespace outrigger::bench
