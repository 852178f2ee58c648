#pragma once

#include <cstdint>
#include <optional>

namespace outrigger::gpu_server {

/// Tells when values are others for good: when so many in a row are all much larger, or all much
/// smaller, than their mean.
class Jump {
 public:
  /// Notes a value; gives the mean of the newest ones, to go on with, where `enough` in a row are
  /// far from `mean` on one side.
  std::optional<double> note(double mean, double value, double enough) {
    constexpr double kFar = 1.6;
    const int side = value > kFar * mean ? 1 : value * kFar < mean ? -1 : 0;
    if (side != side_) begin(side);
    if (side == 0 || mean <= 0) return std::nullopt;
    sum_ += value;
    if (++count_ < enough) return std::nullopt;
    const double now = sum_ / count_;
    begin(0);
    return now;
  }

 private:
  void begin(int side) {
    side_ = side;
    count_ = 0;
    sum_ = 0;
  }

  int side_ = 0;  // 1: above the mean
  uint32_t count_ = 0;
  double sum_ = 0;
};

}  // namespace outrigger::gpu_server
