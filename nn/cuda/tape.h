#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nn/cuda/engine.h"
#include "nn/cuda/input_ring.h"
#include "nn/program.h"

namespace outrigger::nn::cuda {

struct CudaWeights final : Weights {
  explicit CudaWeights(DeviceMemory of) : memory(std::move(of)) {}
  DeviceMemory memory;
};

/// What recordings of a pass have in them; where it differs they are made anew.
struct RecordedWith {
  const std::byte* weights = nullptr;
  const float* sums = nullptr;
  float loss_scale = 0;
  float smoothing = 0;
  uint64_t moves = 0;  // of the work space's
  bool operator==(const RecordedWith&) const = default;
};

/// `memory`: none where it is the work space's, as in CudaWeights.
struct CudaTape final : Tape {
  DeviceMemory memory, slots, labels;
  bool labelled = false;
  DeviceMemory input;               // of passes whose input the host brings when they start
  std::unique_ptr<InputRing> ring;  // of those whose input comes beforehand, if not the space's
  bool has_run = false;
  RecordedWith recorded_with;
  std::vector<std::unique_ptr<Recording>> recordings;  // of the program's pieces; or none yet
};

}  // namespace outrigger::nn::cuda
