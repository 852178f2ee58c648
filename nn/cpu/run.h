#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "nn/cpu/buffers.h"
#include "nn/program.h"

namespace outrigger::nn::cpu {

/// Hands out the numbers 0 … size − 1, each to one holder at a time: what oneDNN needs one of per
/// running task (scratchpad, memory handles). There are as many as the pool has threads.
class Slots {
 public:
  explicit Slots(int size);
  int acquire();
  void release(int slot) { taken_[slot].store(false, std::memory_order_release); }
  int size() const { return size_; }

 private:
  const int size_;
  std::unique_ptr<std::atomic<bool>[]> taken_;
};

class SlotLease {
 public:
  explicit SlotLease(Slots& slots) : slots_(slots), slot_(slots.acquire()) {}
  ~SlotLease() { slots_.release(slot_); }
  SlotLease(const SlotLease&) = delete;
  SlotLease& operator=(const SlotLease&) = delete;
  int slot() const { return slot_; }

 private:
  Slots& slots_;
  const int slot_;
};

/// One forward or backward in progress: where everything lies. Lives on the caller's stack.
struct Run {
  const BufferPlan* plan = nullptr;
  Slots* slots = nullptr;
  std::byte* tape = nullptr;
  std::byte* scratch = nullptr;
  std::byte* slot_scratch = nullptr;  // slots->size() times slot_bytes
  size_t slot_bytes = 0;
  const std::byte* weights = nullptr;
  const ForwardInput* in = nullptr;  // forward only, like out
  const ForwardOutput* out = nullptr;
  const std::byte* output_gradient = nullptr;  // backward only, like back
  const BackwardOutput* back = nullptr;

  /// Sample `sample` of a buffer; for buffers in blocks: the first of a block.
  template <typename T>
  T* at(BufferId id, int64_t sample = 0) const {
    return reinterpret_cast<T*>(plan->address(id, sample, tape, scratch));
  }
  template <typename T>
  const T* weight(size_t offset) const {
    return reinterpret_cast<const T*>(weights + offset);
  }
  std::byte* scratchpad(int slot) const {
    return slot_scratch + static_cast<size_t>(slot) * slot_bytes;
  }
};

}  // namespace outrigger::nn::cpu
