#include "nn/cuda/device/queues.h"

#include "nn/cuda/device/check.h"

namespace outrigger::nn::cuda {
namespace {

struct MarkDeleter {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct GraphDeleter {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
struct ExecutableDeleter {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
template <typename Handle, typename Deleter>
using OwnedHandle = std::unique_ptr<std::remove_pointer_t<Handle>, Deleter>;

class CudaMark final : public Mark {
 public:
  explicit CudaMark(const Streams& streams) : streams_(streams) {
    cudaEvent_t event = nullptr;
    // A host that waits sleeps: spinning would take a core from the workers.
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
          "making an event");
    event_.reset(event);
  }
  void set(Queue queue) override {
    check(cudaEventRecord(event_.get(), streams_.of(queue)), "marking a place in a stream");
  }
  void hold(Queue queue) override {
    check(cudaStreamWaitEvent(streams_.of(queue), event_.get(), 0), "letting a stream wait");
  }
  void wait() override { check(cudaEventSynchronize(event_.get()), "waiting for the device"); }

 private:
  const Streams streams_;
  OwnedHandle<cudaEvent_t, MarkDeleter> event_;
};

class CudaInstant final : public Instant {
 public:
  explicit CudaInstant(cudaStream_t stream) : stream_(stream) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "making an event");
    event_.reset(event);
  }
  void set() override {
    check(cudaEventRecord(event_.get(), stream_), "marking a moment of a stream");
  }
  double seconds_since(const Instant& before) const override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, static_cast<const CudaInstant&>(before).event_.get(),
                               event_.get()),
          "reading how long the device took");
    return static_cast<double>(milliseconds) / 1000;
  }

 private:
  const cudaStream_t stream_;
  OwnedHandle<cudaEvent_t, MarkDeleter> event_;
};

class CudaRecording final : public Recording {
 public:
  CudaRecording(cudaStream_t stream, cudaGraph_t graph) : stream_(stream) {
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph, 0), "making a CUDA graph");
    executable_.reset(executable);
  }
  void run() override {
    check(cudaGraphLaunch(executable_.get(), stream_), "starting a CUDA graph");
  }

 private:
  const cudaStream_t stream_;
  OwnedHandle<cudaGraphExec_t, ExecutableDeleter> executable_;
};

}  // namespace

OwnedStream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return OwnedStream(stream);
}

std::unique_ptr<Mark> make_cuda_mark(const Streams& streams) {
  return std::make_unique<CudaMark>(streams);
}

std::unique_ptr<Instant> make_cuda_instant(cudaStream_t stream) {
  return std::make_unique<CudaInstant>(stream);
}

std::unique_ptr<Recording> capture(cudaStream_t stream, const std::function<void()>& work) {
  // Other threads may take memory meanwhile.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a pass");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    // The stream must not stay in its recording; what went wrong is what work threw.
    static_cast<void>(cudaStreamEndCapture(stream, &graph));
    if (graph != nullptr) cudaGraphDestroy(graph);
    static_cast<void>(cudaGetLastError());
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "recording a pass");
  const OwnedHandle<cudaGraph_t, GraphDeleter> owned(graph);
  return std::make_unique<CudaRecording>(stream, graph);
}

}  // namespace outrigger::nn::cuda
