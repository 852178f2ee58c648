#include "feed/crossing.h"

#include <string>

#include "common/error.h"

namespace outrigger::feed {
namespace {

bool has_type(const MicroBatch& result, const Crossing& wanted) {
  if (result.scales == nullptr) return result.tensor->type() == wanted.type;
  return wanted.type != ElementType::kUint8 && element_size(result.tensor->type()) == 1 &&
         result.scales->type() == ElementType::kFloat32 &&
         result.scales->shape() == Shape{wanted.sample.back()};
}

std::string text_of(const Shape& shape, ElementType type, size_t statistics) {
  return outrigger::to_string(shape) + " of " + outrigger::to_string(type) + " with " +
         std::to_string(statistics) + " statistics";
}

}  // namespace

void check_crossing(const MicroBatch& result, const Crossing& wanted, size_t samples) {
  Shape shape{static_cast<int64_t>(samples)};
  shape.insert(shape.end(), wanted.sample.begin(), wanted.sample.end());
  const Tensor& tensor = *result.tensor;
  if (tensor.shape() == shape && has_type(result, wanted) &&
      result.statistics.size() == wanted.statistics)
    return;
  throw InvalidInput("micro-batch " + to_string(result.key) + " is " +
                     text_of(tensor.shape(), tensor.type(), result.statistics.size()) +
                     "; wanted is " + text_of(shape, wanted.type, wanted.statistics));
}

}  // namespace outrigger::feed
