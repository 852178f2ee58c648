#include "nn/cpu/onednn/weight_layout.h"

#include <algorithm>

namespace outrigger::nn::cpu::onednn {
namespace {

// The place of index i of one dimension, all other indexes being 0.
int64_t term(const dnnl::memory::desc& layout, int64_t dimension, int64_t index) {
  const auto sizes = layout.get_inner_blks();
  const auto dimensions = layout.get_inner_idxs();
  int64_t place = 0, stride = 1;
  for (size_t b = sizes.size(); b-- > 0;) {
    if (dimensions[b] == dimension) {
      place += index % sizes[b] * stride;
      index /= sizes[b];
    }
    stride *= sizes[b];
  }
  return place + index * layout.get_strides()[static_cast<size_t>(dimension)];
}

std::vector<int64_t> terms(const dnnl::memory::desc& layout, int64_t dimension) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < layout.get_dims()[static_cast<size_t>(dimension)]; ++i)
    result.push_back(term(layout, dimension, i));
  return result;
}

bool in_runs(const std::vector<int64_t>& places, int64_t run, int64_t step) {
  if (static_cast<int64_t>(places.size()) % run != 0) return false;
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t inside = i % static_cast<size_t>(run);
    if (places[i] != places[i - inside] + static_cast<int64_t>(inside) * step) return false;
  }
  return true;
}

}  // namespace

WeightLayout::WeightLayout(const dnnl::memory::desc& layout)
    : bytes_(static_cast<int64_t>(layout.get_size())) {
  const bool grouped = layout.get_ndims() == 5;
  const int64_t first = grouped ? 1 : 0;
  group_ = grouped ? terms(layout, 0) : std::vector<int64_t>{0};
  out_ = terms(layout, first);
  in_ = terms(layout, first + 1);
  for (const int64_t row : terms(layout, first + 2)) {
    for (const int64_t column : terms(layout, first + 3)) place_.push_back(row + column);
  }
  places_ = static_cast<int64_t>(place_.size());
  row_ = in_.size() > 1 ? in_[1] - in_[0] : 0;
  tiled_ = in_runs(out_, kTile, 1) && in_runs(in_, kTile, row_);
  out_tasks_ = (static_cast<int64_t>(out_.size()) + kTile - 1) / kTile;
  tasks_ = static_cast<int>(static_cast<int64_t>(group_.size()) * out_tasks_);
}

// tile: {places, 16 in, 16 out}
void WeightLayout::sum_tile(int64_t base, const Partials& partials, float* tile) const {
  for (int64_t k = 0; k < places_; ++k) {
    float* values = tile + k * kTile * kTile;
    const int64_t first = base + place_[static_cast<size_t>(k)];
    for (int64_t in = 0; in < kTile; ++in, values += kTile) {
      const int64_t at = first + in * row_;
      std::copy_n(partials[0] + at, kTile, values);
      for (int i = 1; i < partials.count; ++i) {
        const float* partial = partials[i];
        for (int64_t out = 0; out < kTile; ++out) values[out] += partial[at + out];
      }
    }
  }
}

void WeightLayout::sum_slowly(int64_t group, int64_t begin, int64_t end, const Partials& partials,
                              float* plain) const {
  for (int64_t out = begin; out < end; ++out) {
    for (const int64_t in : in_) {
      for (const int64_t place : place_) {
        const int64_t at =
            group_[static_cast<size_t>(group)] + out_[static_cast<size_t>(out)] + in + place;
        float sum = partials[0][at];
        for (int i = 1; i < partials.count; ++i) sum += partials[i][at];
        *plain++ = sum;
      }
    }
  }
}

void WeightLayout::sum(int task, const Partials& partials, float* tile, float* plain) const {
  const int64_t group = task / out_tasks_, begin = task % out_tasks_ * kTile;
  const auto outs = static_cast<int64_t>(out_.size()), ins = static_cast<int64_t>(in_.size());
  const int64_t end = std::min(begin + kTile, outs);
  float* rows = plain + (group * outs + begin) * ins * places_;
  if (!tiled_) return sum_slowly(group, begin, end, partials, rows);
  for (int64_t in = 0; in < ins; in += kTile) {
    sum_tile(group_[static_cast<size_t>(group)] + out_[static_cast<size_t>(begin)] +
                 in_[static_cast<size_t>(in)],
             partials, tile);
    for (int64_t out = 0; out < kTile; ++out) {
      // Written in order, read from the cache.
      float* row = rows + (out * ins + in) * places_;
      for (int64_t i = 0; i < kTile; ++i) {
        const float* from = tile + i * kTile + out;
        for (int64_t k = 0; k < places_; ++k) *row++ = from[k * kTile * kTile];
      }
    }
  }
}

}  // namespace outrigger::nn::cpu::onednn
