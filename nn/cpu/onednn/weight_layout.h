#pragma once

#include <cstdint>
#include <vector>

#include "nn/cpu/onednn/primitive.h"

namespace outrigger::nn::cpu::onednn {

/// Partial gradients one behind another, in one layout.
struct Partials {
  const float* first = nullptr;
  int count = 0;
  int64_t apart = 0;  // floats from one to the next

  const float* operator[](int index) const { return first + index * apart; }
};

/// Where oneDNN puts each weight of a convolution: its place is a sum of one term for each index.
class WeightLayout {
 public:
  /// `layout` of {out, in, kernel, kernel} or {groups, out, in, kernel, kernel}, float32.
  explicit WeightLayout(const dnnl::memory::desc& layout);

  int64_t bytes() const { return bytes_; }
  /// Pieces of work that sum() can be split into; each is a range of output channels.
  int tasks() const { return tasks_; }

  /// Adds up partial gradients in this layout, in order, and writes task `task`'s part of the sum
  /// in PyTorch's layout. `tile` holds tile_bytes().
  void sum(int task, const Partials& partials, float* tile, float* plain) const;
  size_t tile_bytes() const { return static_cast<size_t>(kTile * kTile * places_) * sizeof(float); }

 private:
  static constexpr int64_t kTile = 16;
  void sum_tile(int64_t base, const Partials& partials, float* tile) const;
  void sum_slowly(int64_t group, int64_t begin, int64_t end, const Partials& partials,
                  float* plain) const;

  std::vector<int64_t> group_, out_, in_, place_;  // the terms
  int64_t places_ = 1;                             // kernel * kernel
  int64_t bytes_ = 0;
  int64_t out_tasks_ = 1;
  int tasks_ = 1;
  bool tiled_ = false;  // 16 x 16 tiles, output channels innermost,
  int64_t row_ = 0;     // and so many floats from one input channel to the next
};

}  // namespace outrigger::nn::cpu::onednn
