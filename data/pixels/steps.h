#pragma once

#include <memory>

#include "common/random.h"
#include "data/augment.h"
#include "data/pixels/canvas.h"

namespace outrigger::data::pixels {

struct Size {
  int height = 0;
  int width = 0;
};

/// One step of a list, with its numbers made whole. Constant, shared by threads.
class Step {
 public:
  virtual ~Step() = default;
  virtual void apply(Canvas& canvas, RandomStream& random) const = 0;
};

/// `size`: of the image that the pipeline makes. Throws InvalidInput that names the step, the
/// field, the value and what is allowed.
std::unique_ptr<const Step> make_step(const AugmentStep& options, const Size& size);

}  // namespace outrigger::data::pixels
