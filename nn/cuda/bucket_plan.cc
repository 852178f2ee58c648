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

// A parameter lies in one layer, so a bucket has all of it or nothing.
std::vector<GradientBucket> plan_buckets(const Graph& graph, Segment segment,
                                         const std::function<int(int layer)>& step_of) {
  const int64_t first = graph.parameter_range(segment).offset;
  std::vector<GradientPiece> pieces;
  for (int layer = segment.begin; layer < segment.end; ++layer) {
    const Range range = graph.parameter_range({layer, layer + 1});
    if (range.size > 0) pieces.push_back({{range.offset - first, range.size}, step_of(layer)});
  }
  return plan_buckets(pieces, kBucketFloats);
}

}  // namespace outrigger::nn::cuda
