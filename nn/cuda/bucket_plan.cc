#include "nn/cuda/bucket_plan.h"

#include <algorithm>

#include "common/error.h"

namespace outrigger::nn::cuda {

std::vector<GradientBucket> plan_buckets(std::span<const GradientPiece> pieces, int64_t least) {
  std::vector<GradientBucket> buckets;
  int step = -1;
  int64_t begin = pieces.empty() ? 0 : pieces.back().range.end();
  bool open = false;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    ensure(piece->range.end() == begin, "pieces follow one another");
    begin = piece->range.offset;
    step = std::max(step, piece->step);
    if (!open) {
      buckets.push_back({piece->range, step});
      open = true;
    } else {
      GradientBucket& bucket = buckets.back();
      bucket.range = {begin, bucket.range.end() - begin};
      bucket.step = step;
    }
    open = buckets.back().range.size < least;
  }
  return buckets;
}

}  // namespace outrigger::nn::cuda
