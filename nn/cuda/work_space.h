#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "nn/cuda/engine.h"
#include "nn/cuda/input_ring.h"
#include "nn/program.h"

namespace outrigger::nn::cuda {

/// Memory that programs of one engine use in turn, each place as large as the largest of them wants
/// it. Their copies of the weights lie here too, so that of all that were loaded the last is there,
/// until another program is compiled; and so do the inputs of passes to come. Whoever calls holds
/// the engine.
class CudaWorkSpace final : public WorkSpace {
 public:
  enum Place : uint8_t { kScratch, kGradients, kTold, kTape, kWeights };

  explicit CudaWorkSpace(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  size_t bytes() const override;
  /// Room for so much from now on; what the place had is gone where it moves. Waits then for what
  /// is queued. Throws OutOfDeviceMemory, and the place is as large as it was.
  void reserve(Place place, size_t bytes, const std::string& what, int64_t batch = 0);
  std::byte* data(Place place) const { return places_[place].memory.data(); }
  /// How often a place has moved: what has addresses in it is good for as long as this is the same.
  uint64_t moves() const { return moves_; }
  /// For inputs of this kind from now on; what was put and not taken stays.
  InputRing& ring(const TensorSpec& spec);
  /// As it is.
  InputRing& ring() { return *ring_; }

 private:
  struct Piece {
    DeviceMemory memory;
    std::string what;
    int64_t batch = 0;
  };
  const std::shared_ptr<Engine> engine_;
  std::array<Piece, kWeights + 1> places_;
  uint64_t moves_ = 0;
  std::unique_ptr<InputRing> ring_;  // made when it is first wanted
};

}  // namespace outrigger::nn::cuda
