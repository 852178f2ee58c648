#include "training/evaluation/labelled_rows.h"

#include <cmath>
#include <numeric>
#include <string>

#include "common/error.h"

namespace outrigger::training {

void check_rows(const LabelledRows& rows) {
  if (rows.features <= 0 ||
      static_cast<int64_t>(rows.values.size()) != rows.count() * rows.features) {
    throw InvalidInput(std::to_string(rows.values.size()) + " values are not " +
                       std::to_string(rows.count()) + " rows of " + std::to_string(rows.features));
  }
}

std::vector<float> normalized(std::span<const float> values, int64_t features) {
  std::vector<float> unit(values.begin(), values.end());
  const auto width = static_cast<size_t>(features);
  for (size_t first = 0; first + width <= unit.size(); first += width) {
    double squares = 0;
    for (size_t i = first; i < first + width; ++i)
      squares += static_cast<double>(unit[i]) * unit[i];
    if (!std::isfinite(squares)) {
      throw InvalidInput("embedding " + std::to_string(first / width) +
                         " holds a value that is not finite");
    }
    if (squares == 0) continue;
    const double scale = 1.0 / std::sqrt(squares);
    for (size_t i = first; i < first + width; ++i) unit[i] = static_cast<float>(unit[i] * scale);
  }
  return unit;
}

float dot(std::span<const float> a, std::span<const float> b) {
  constexpr size_t kLanes = 8;  // independent sums, so that the compiler may use vector registers
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  float sum = std::accumulate(lanes, lanes + kLanes, 0.0f);
  for (; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace outrigger::training
