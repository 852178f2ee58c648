#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/program.h"

/// The backend for NVIDIA GPUs: cuDNN for convolutions, cuBLAS for products of matrices, own
/// kernels for the rest, with batch norm, addition and activation in one pass over memory. A
/// program's logic (this folder and operations/) knows the device through engine.h alone and is
/// tested on the host; device/ is all that knows CUDA.
namespace outrigger::nn::cuda {

struct CudaOptions {
  bool bfloat16 = false;        // whether programs will be of that precision: older GPUs have none
  int device = 0;               // among those that CUDA_VISIBLE_DEVICES shows
  bool tensor_float32 = false;  // float32 convolutions and products on tensor cores, with 10 bits
  bool deterministic = true;    // only algorithms that give the same bits every time
  /// Training programs keep of a micro-batch only what enters their pieces, and compute the rest
  /// again in the backward pass: the same numbers in less memory. As make_recomputing
  /// (nn/recompute.h), but one pass still.
  bool recompute = false;
  /// Where the fastest of cuDNN's plans are kept once they were timed (plan_cache.h); empty:
  /// nothing is timed, and cuDNN's first guess is taken.
  std::filesystem::path plan_file = {};
  /// Of the host's memory that may be pinned for inputs on their way (Backend::input_memory), in
  /// bytes; 0: none.
  uint64_t most_pinned = 0;
};

/// Memory of the device that a backend has taken.
struct MemoryUse {
  std::string what;
  int64_t bytes = 0;
};

/// Whether this build has the backend at all.
bool is_built();

/// The device's place on the bus, "0000:65:00.0", by which other tools know it; empty where there
/// is none.
std::string bus_id(int device);

/// What a backend of this folder has taken of its device, the most first; of another one nothing.
std::vector<MemoryUse> memory_uses(const Backend& backend);

/// What is free of its device's memory, in bytes; nothing of a backend of another folder.
std::optional<int64_t> free_memory(const Backend& backend);

/// What of a pass's forward is there until its backward, by the layer whose it is (the last of
/// those that run as one), the most first: of the training program of a backend of this folder
/// that keeps the most; of another one nothing.
std::vector<MemoryUse> kept_by_layers(const Backend& backend);

/// Opens the device. Throws NoDevice (errors.h) where there is none that can be used, or where the
/// build has no CUDA. Precision bfloat16 stores maps and what is multiplied as bfloat16 and sums in
/// float32; feature vectors and what works on them stay float32. Programs throw OutOfDeviceMemory.
/// A program waits for others of the same backend: the device has one queue.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options = {});

}  // namespace outrigger::nn::cuda
