#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <type_traits>

#include "nn/cuda/engine.h"

namespace outrigger::nn::cuda {

struct StreamDeleter {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using OwnedStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamDeleter>;

/// A stream that waits for no other. Throws DeviceError, as all here do.
OwnedStream make_stream();

/// The streams of an engine's queues.
struct Streams {
  cudaStream_t work = nullptr;
  cudaStream_t copies = nullptr;
  cudaStream_t of(Queue queue) const { return queue == Queue::kWork ? work : copies; }
};

/// An event. The streams must outlive it.
std::unique_ptr<Mark> make_cuda_mark(const Streams& streams);

/// An event with its time. The stream must outlive it.
std::unique_ptr<Instant> make_cuda_instant(cudaStream_t stream);

/// What `work` queues on the stream, as a CUDA graph (CUDA C++ Programming Guide, "CUDA Graphs").
std::unique_ptr<Recording> capture(cudaStream_t stream, const std::function<void()>& work);

}  // namespace outrigger::nn::cuda
