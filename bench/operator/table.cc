#include "bench/operator/table.h"

#include <algorithm>
#include <cstdio>

namespace outrigger::bench {

Table::Table() {
  std::printf("%-66s %14s  %-16s\n", "what", "figure", "target");
  std::fflush(stdout);
}

void Table::figure(const std::string& what, const std::string& figure) {
  std::printf("%-74s %14s\n", what.c_str(), figure.c_str());
  std::fflush(stdout);
}

void Table::judge(const std::string& what, const std::string& figure, const std::string& target,
                  bool met) {
  missed_ |= !met;
  std::printf("%-74s %14s  %-15s %s\n", what.c_str(), figure.c_str(), ("at " + target).c_str(),
              met ? "met" : "MISSED");
  std::fflush(stdout);
}

std::string number(double value, int digits, const std::string& unit) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f%s", digits, value, unit.c_str());
  return text;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median_ratio(const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / theirs[i]);
  return median(ratios);
}

}  // namespace outrigger::bench
