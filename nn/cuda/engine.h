#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nn/cuda/backend.h"
#include "nn/cuda/collective.h"
#include "nn/cuda/kernels/kernels.h"
#include "nn/resident.h"

namespace outrigger::nn::cuda {

/// c {rows, columns} = a {rows, inner} * b {inner, columns}, all row by row. A transposed factor
/// lies in memory as {inner, rows}, or {columns, inner}. a and b have one type; c has it too, or is
/// float32.
struct Product {
  ConstArray a, b;
  Array c;
  int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  bool add = false;  // to what c holds
};

enum class ConvolutionPass : uint8_t { kForward, kInputGradient, kWeightGradient };

/// What a forward pass does beside the convolution while its sums are on their way to memory: adds
/// a bias of each channel, with a ReLU behind it, or sums up what it writes.
enum class Epilogue : uint8_t { kNone, kBias, kBiasRelu, kStatistics };
inline bool has_bias(Epilogue epilogue) {
  return epilogue == Epilogue::kBias || epilogue == Epilogue::kBiasRelu;
}

/// What the device's library is asked to plan.
struct ConvolutionRequest {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::kForward;
  Epilogue epilogue = Epilogue::kNone;  // of a forward pass only
};

/// forward: a is x, b the weights, result y; input gradient: dy, weights, dx; weight gradient: dy,
/// x, dw in {out, k, k, in}.
struct ConvolutionArrays {
  const void* a = nullptr;
  const void* b = nullptr;
  void* result = nullptr;
  const void* bias = nullptr;  // {out}, of the shape's type
  float* sums = nullptr;  // {2, out}: of a channel of y over the whole batch, and of its squares
  void* workspace = nullptr;
};

/// A convolution that the device's library has planned.
class PlannedConvolution {
 public:
  virtual ~PlannedConvolution() = default;
  virtual size_t workspace_bytes() const = 0;
  /// Of what a weight gradient is written as; maps have the shape's type.
  virtual Stored result_type() const = 0;
  virtual void run(const ConvolutionArrays& arrays) = 0;
};

/// A device's two orders of work: what computes, and copies of what comes next, beside it.
enum class Queue : uint8_t { kWork, kCopies };

/// A place in a queue, moved by each `set`. Before the first nobody waits for it.
class Mark {
 public:
  virtual ~Mark() = default;
  /// Behind all that is queued there so far.
  virtual void set(Queue queue) = 0;
  /// What is queued there from now on waits for it.
  virtual void hold(Queue queue) = 0;
  /// The host waits for it.
  virtual void wait() = 0;
};

/// A moment of the work queue, moved by each `set`.
class Instant {
 public:
  virtual ~Instant() = default;
  virtual void set() = 0;
  /// Both were set, and the device has passed them.
  virtual double seconds_since(const Instant& before) const = 0;
};

/// Work that was put down once, to be queued as one as often as wanted.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void run() = 0;
};

/// Where programs run: one device with one queue of work, and one of copies beside it. What is
/// called is queued as work and done in order; `upload` and `download` have moved the data when
/// they return. Not thread-safe: callers hold `enter()`.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Until the lock goes, the calling thread alone uses the engine.
  virtual std::unique_lock<std::mutex> enter() = 0;
  virtual const Kernels& kernels() const = 0;
  /// 256-byte aligned. Throws OutOfDeviceMemory: `what` says for what, `batch` as in Shortage.
  /// Needs no lock, and neither does release.
  virtual void* allocate(size_t bytes, const std::string& what, int64_t batch) = 0;
  virtual void release(void* memory) = 0;
  /// What is taken, summed up by what it is for. Needs no lock.
  virtual std::vector<MemoryUse> memory() const = 0;
  virtual void upload(void* device, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* device, size_t bytes) = 0;
  /// Memory of the host that copies need no help of the host for. Throws OutOfDeviceMemory, which
  /// names the host, and DeviceError. Needs no lock, and neither does its release, which waits for
  /// what still uses it, unless something may be recorded meanwhile.
  virtual void* allocate_pinned(size_t bytes, const std::string& what) = 0;
  virtual void release_pinned(void* memory) = 0;
  /// Whether all of it lies in pinned memory that was given out here. Needs no lock.
  virtual bool is_pinned(const void* data, size_t bytes) const = 0;
  /// Queued only: pinned memory is read, or written, when its turn comes.
  virtual void upload_pinned(Queue queue, void* device, const void* pinned, size_t bytes) = 0;
  virtual void download_pinned(void* pinned, const void* device, size_t bytes) = 0;
  virtual std::unique_ptr<Mark> make_mark() = 0;
  virtual std::unique_ptr<Instant> make_instant() = 0;
  /// A name, for profilers, of what the calling thread queues until the end; they nest. Needs no
  /// lock.
  virtual void begin_range(const char* name) = 0;
  virtual void end_range() = 0;
  /// Puts down what `work` would queue, and does none of it. It may neither move data to or from
  /// the host nor wait, and must have run once before: libraries load what they need then.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;
  /// Within the device.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void clear(void* device, size_t bytes) = 0;
  virtual void synchronize() = 0;
  virtual void multiply(const Product& product) = 0;
  /// Null where the library has none for this shape, or one with an epilogue that takes longer than
  /// its parts: the caller has kernels of its own. Planned once a request, and shared.
  virtual std::shared_ptr<PlannedConvolution> plan_convolution(
      const ConvolutionRequest& request) = 0;
  /// Meets the other ranks; null where there is no way between their devices, on all alike. The
  /// engine must outlive it.
  virtual std::unique_ptr<Collective> join(const RankGroup& ranks) = 0;
};

/// A named range that lasts as long as this.
class NamedRange {
 public:
  NamedRange(Engine& engine, const char* name) : engine_(engine) { engine_.begin_range(name); }
  ~NamedRange() { engine_.end_range(); }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  Engine& engine_;
};

/// Memory that an engine gives, released with this. Movable. `Kind`: where it lies.
template <typename Kind>
class EngineMemory {
 public:
  EngineMemory() = default;
  /// `what` and, where given, `batch` are for the message where there is not enough.
  template <typename... Wish>
  EngineMemory(std::shared_ptr<Engine> engine, size_t bytes, const Wish&... wish)
      : engine_(std::move(engine)),
        bytes_(bytes),
        data_(bytes == 0 ? nullptr : Kind::allocate(*engine_, bytes, wish...)) {}
  ~EngineMemory() {
    if (data_ != nullptr) Kind::release(*engine_, data_);
  }
  EngineMemory(EngineMemory&& other) noexcept
      : engine_(std::move(other.engine_)),
        bytes_(std::exchange(other.bytes_, 0)),
        data_(std::exchange(other.data_, nullptr)) {}
  EngineMemory& operator=(EngineMemory&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  EngineMemory(const EngineMemory&) = delete;
  EngineMemory& operator=(const EngineMemory&) = delete;

  size_t bytes() const { return bytes_; }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  std::shared_ptr<Engine> engine_;
  size_t bytes_ = 0;
  void* data_ = nullptr;
};

struct OnDevice {
  static void* allocate(Engine& engine, size_t bytes, const std::string& what, int64_t batch = 0) {
    return engine.allocate(bytes, what, batch);
  }
  static void release(Engine& engine, void* data) { engine.release(data); }
};
struct Pinned {
  static void* allocate(Engine& engine, size_t bytes, const std::string& what) {
    return engine.allocate_pinned(bytes, what);
  }
  static void release(Engine& engine, void* data) { engine.release_pinned(data); }
};

using DeviceMemory = EngineMemory<OnDevice>;
/// Of the host.
using PinnedMemory = EngineMemory<Pinned>;

}  // namespace outrigger::nn::cuda
