#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace outrigger::training {

/// Rows of one evaluation. values: {N, F}, row after row; labels: N, any integers.
struct LabelledRows {
  std::span<const float> values;
  int64_t features = 0;
  std::span<const int32_t> labels;

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  std::span<const float> row(int64_t index) const {
    return values.subspan(static_cast<size_t>(index * features), static_cast<size_t>(features));
  }
};

/// Throws InvalidInput unless there is a row of values for every label.
void check_rows(const LabelledRows& rows);

/// Rows scaled to length 1, so that their products are cosines; a row of zeros stays. {N, F}.
/// Throws InvalidInput that names the first row with a value that is not finite.
std::vector<float> normalized(std::span<const float> values, int64_t features);

/// The product of two rows of equal length.
float dot(std::span<const float> a, std::span<const float> b);

}  // namespace outrigger::training
