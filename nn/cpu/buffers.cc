#include "nn/cpu/buffers.h"

#include <algorithm>
#include <numeric>

#include "common/error.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
Slots::Slots(int size)
    : size_(size), taken_(std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(size))) {}

int Slots::acquire() {
  for (int slot = 0; slot < size_; ++slot) {
    if (!taken_[static_cast<size_t>(slot)].load(std::memory_order_relaxed) &&
        !taken_[static_cast<size_t>(slot)].exchange(true, std::memory_order_acquire))
      return slot;
  }
  impossible("more tasks run at once than the pool has threads");
}

BufferId BufferPlan::add(Home home, int64_t sample_bytes, int64_t bytes) {
  buffers_.push_back(
      {home, static_cast<size_t>(sample_bytes), aligned(static_cast<size_t>(bytes))});
  return {static_cast<int>(buffers_.size()) - 1};
}
BufferId BufferPlan::tape(int64_t bytes_per_sample) {
  return add(Home::kTape, bytes_per_sample, bytes_per_sample * blocks_.batch);
}
BufferId BufferPlan::tape_fixed(int64_t bytes) { return add(Home::kTape, 0, bytes); }
BufferId BufferPlan::whole(int64_t bytes_per_sample) {
  return add(Home::kWhole, bytes_per_sample, bytes_per_sample * blocks_.batch);
}
BufferId BufferPlan::whole_fixed(int64_t bytes) { return add(Home::kWhole, 0, bytes); }
BufferId BufferPlan::blocked(int64_t bytes_per_sample) {
  return add(Home::kBlocked, bytes_per_sample, bytes_per_sample * blocks_.size);
}

void BufferPlan::note_uses(const Schedule& schedule, int shift) {
  for (size_t i = 0; i < schedule.pieces().size(); ++i) {
    const Piece& piece = schedule.pieces()[i];
    for (const BufferId id : piece.uses) {
      if (!id) continue;
      Buffer& buffer = buffers_[static_cast<size_t>(id.index)];
      ensure(buffer.home != Home::kBlocked || piece.kind == PieceKind::kBlock,
             "blocked buffers are used by block pieces only");
      const int time =
          shift + (buffer.home == Home::kBlocked ? static_cast<int>(i) : schedule.phase_of(i));
      buffer.begin = buffer.begin < 0 ? time : std::min(buffer.begin, time);
      buffer.end = std::max(buffer.end, time);
    }
  }
}

// Largest first, each at the lowest place that is free as long as it lives.
size_t BufferPlan::pack(Home home) {
  std::vector<Buffer*> order;
  for (Buffer& buffer : buffers_) {
    if (buffer.home == home && buffer.begin >= 0) order.push_back(&buffer);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  size_t total = 0;
  std::vector<Buffer*> placed;  // by offset
  for (Buffer* buffer : order) {
    size_t offset = 0;
    for (const Buffer* other : placed) {
      const bool meet = other->begin <= buffer->end && buffer->begin <= other->end;
      if (!meet || other->offset + other->bytes <= offset) continue;
      if (offset + buffer->bytes <= other->offset) break;
      offset = other->offset + other->bytes;
    }
    buffer->offset = offset;
    total = std::max(total, offset + buffer->bytes);
    const auto after =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [](size_t at, const Buffer* other) { return at < other->offset; });
    placed.insert(after, buffer);
  }
  return total;
}

void BufferPlan::assign(const Schedule& forward, const Schedule& backward) {
  // The two passes' times must not meet: scratch holds nothing between them.
  note_uses(forward, 0);
  note_uses(backward, static_cast<int>(forward.pieces().size()) + 1);
  for (Buffer& buffer : buffers_) {
    if (buffer.home != Home::kTape) continue;
    buffer.offset = tape_bytes_;
    tape_bytes_ += buffer.bytes;
  }
  whole_bytes_ = pack(Home::kWhole);
  block_bytes_ = pack(Home::kBlocked);
}

std::vector<size_t> BufferPlan::tape_bytes_by_layer(const Schedule& forward, int layers) const {
  std::vector<size_t> bytes(static_cast<size_t>(layers));
  std::vector<bool> counted(buffers_.size());
  for (const Piece& piece : forward.pieces()) {
    for (const BufferId id : piece.uses) {
      if (!id || counted[static_cast<size_t>(id.index)]) continue;
      const Buffer& buffer = buffers_[static_cast<size_t>(id.index)];
      counted[static_cast<size_t>(id.index)] = true;
      if (buffer.home == Home::kTape) bytes[static_cast<size_t>(piece.layer)] += buffer.bytes;
    }
  }
  return bytes;
}

}  // namespace outrigger::nn::cpu
