#include "nn/cuda/work_space.h"

#include "nn/cuda/errors.h"

namespace outrigger::nn::cuda {

size_t CudaWorkSpace::bytes() const {
  size_t all = 0;
  for (const Piece& piece : places_) all += piece.memory.bytes();
  return all;
}

void CudaWorkSpace::reserve(Place place, size_t bytes, const std::string& what, int64_t batch) {
  Piece& piece = places_[place];
  const size_t before = piece.memory.bytes();
  if (before >= bytes) return;
  ++moves_;
  engine_->synchronize();
  piece.memory = {};  // both may be more than there is
  try {
    piece.memory = DeviceMemory(engine_, bytes, what, batch);
  } catch (const OutOfDeviceMemory&) {
    if (before > 0) piece.memory = DeviceMemory(engine_, before, piece.what, piece.batch);
    throw;
  }
  piece.what = what;
  piece.batch = batch;
}

InputRing& CudaWorkSpace::ring(const TensorSpec& spec) {
  if (ring_ == nullptr) {
    ring_ = std::make_unique<InputRing>(engine_, spec);
  } else {
    ring_->use(spec);
  }
  return *ring_;
}

}  // namespace outrigger::nn::cuda
