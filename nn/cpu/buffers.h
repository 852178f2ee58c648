#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/cpu/blocks.h"
#include "nn/cpu/schedule.h"

namespace outrigger::nn::cpu {

/// `bytes` rounded up to whole cache lines, so that two blocks' tasks never write one line.
constexpr size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Every intermediate tensor's place, fixed at compile time.
///
/// On the *tape*: kept from forward to backward. In *scratch*, shared by both passes: *whole*
/// buffers hold all samples side by side and give up their place when the phase of their last use
/// is over; *blocked* ones hold a block's samples in that block's own area, give up their place
/// after the piece of their last use, and so stay in the cache.
class BufferPlan {
 public:
  explicit BufferPlan(const Blocks& blocks) : blocks_(blocks) {}

  BufferId tape(int64_t bytes_per_sample);
  BufferId tape_fixed(int64_t bytes);
  BufferId whole(int64_t bytes_per_sample);
  BufferId whole_fixed(int64_t bytes);
  BufferId blocked(int64_t bytes_per_sample);

  /// Whether all samples lie side by side.
  bool contiguous(BufferId id) const {
    return buffers_[static_cast<size_t>(id.index)].home != Home::kBlocked;
  }

  /// Places everything. The schedules, finished, say when each buffer is used.
  void assign(const Schedule& forward, const Schedule& backward);

  size_t tape_bytes() const { return tape_bytes_; }
  /// Bytes of the tape by layer of the graph, of which there are `layers`: each buffer counts for
  /// the layer that is the first to use it in the forward pass.
  std::vector<size_t> tape_bytes_by_layer(const Schedule& forward, int layers) const;
  size_t scratch_bytes() const {
    return whole_bytes_ + block_bytes_ * static_cast<size_t>(blocks_.count());
  }

  std::byte* address(BufferId id, int64_t sample, std::byte* tape, std::byte* scratch) const {
    const Buffer& buffer = buffers_[static_cast<size_t>(id.index)];
    const size_t inside = buffer.offset + static_cast<size_t>(sample) * buffer.sample_bytes;
    if (buffer.home == Home::kTape) return tape + inside;
    if (buffer.home == Home::kWhole) return scratch + inside;
    const auto block = static_cast<size_t>(sample / blocks_.size);
    const auto within = static_cast<size_t>(sample % blocks_.size);
    return scratch + whole_bytes_ + block * block_bytes_ + buffer.offset +
           within * buffer.sample_bytes;
  }

 private:
  enum class Home : uint8_t { kTape, kWhole, kBlocked };
  struct Buffer {
    Home home;
    size_t sample_bytes;  // 0: does not grow with the batch
    size_t bytes;         // of the batch, or of a block
    size_t offset = 0;
    int begin = -1;  // first and last use: phases, or pieces for blocked ones; -1: none
    int end = -1;
  };
  BufferId add(Home home, int64_t sample_bytes, int64_t bytes);
  void note_uses(const Schedule& schedule, int shift);
  size_t pack(Home home);

  Blocks blocks_;
  std::vector<Buffer> buffers_;
  size_t tape_bytes_ = 0, whole_bytes_ = 0, block_bytes_ = 0;
};

}  // namespace outrigger::nn::cpu
