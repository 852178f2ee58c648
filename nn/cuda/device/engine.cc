#include "nn/cuda/device/engine.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <array>
#include <map>
#include <optional>

#include "common/log.h"
#include "nn/cuda/device/check.h"
#include "nn/cuda/device/convolution.h"
#include "nn/cuda/device/launch.h"
#include "nn/cuda/device/nccl_collective.h"
#include "nn/cuda/device/nvtx.h"
#include "nn/cuda/device/queues.h"
#include "nn/cuda/device_facts.h"
#include "nn/cuda/errors.h"
#include "nn/cuda/memory_book.h"
#include "nn/cuda/pinned_ranges.h"
#include "nn/cuda/plan_cache.h"

namespace outrigger::nn::cuda {
namespace {

struct BlasDeleter {
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
};
struct DnnDeleter {
  void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
};
struct MemoryDeleter {
  void operator()(void* memory) const { cudaFree(memory); }
};
template <typename Handle, typename Deleter>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Deleter>;

cudaDataType data_type(Stored type) {
  if (type == Stored::kFloat16) return CUDA_R_16F;
  return type == Stored::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

DeviceFacts gather_facts(const CudaOptions& options) {
  const int wanted = options.device;
  DeviceFacts facts;
  facts.wanted = wanted;
  facts.wants_bfloat16 = options.bfloat16;
  cudaRuntimeGetVersion(&facts.runtime_version);
  cudaDriverGetVersion(&facts.driver_version);
  const cudaError_t counted = cudaGetDeviceCount(&facts.device_count);
  if (counted != cudaSuccess) {
    facts.device_count = 0;
    facts.count_error = cudaGetErrorString(counted);
  }
  if (wanted >= facts.device_count) return facts;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, wanted), "asking for the device's properties");
  facts.name = static_cast<const char*>(properties.name);
  facts.capability = 10 * properties.major + properties.minor;
  return facts;
}

using ConvolutionKey = std::array<int64_t, 14>;

ConvolutionKey key_of(const ConvolutionRequest& request) {
  const ConvolutionShape& s = request.shape;
  return {static_cast<int64_t>(request.pass),
          static_cast<int64_t>(request.epilogue),
          static_cast<int64_t>(s.type),
          s.samples,
          s.in_channels,
          s.out_channels,
          s.groups,
          s.in_height,
          s.in_width,
          s.out_height,
          s.out_width,
          s.kernel,
          s.stride,
          s.padding};
}

class CudaEngine final : public Engine {
 public:
  CudaEngine(const CudaOptions& options, const DeviceFacts& facts) : options_(options) {
    if (!options.plan_file.empty()) plans_.emplace(options.plan_file, plans_depend_on(facts));
    check(cudaSetDevice(options.device), "choosing the device");
    stream_ = make_stream();
    copies_ = make_stream();
    const cudaStream_t stream = stream_.get();
    cublasHandle_t blas = nullptr;
    check(cublasCreate(&blas), "starting cuBLAS");
    blas_.reset(blas);
    check(cublasSetStream(blas, stream), "starting cuBLAS");
    blas_workspace_.reset(allocate(kBlasWorkspaceBytes, "cuBLAS", 0));
    check(cublasSetWorkspace(blas, blas_workspace_.get(), kBlasWorkspaceBytes), "starting cuBLAS");
    // Sums are float32 until they are done, whatever they are stored as.
    constexpr auto kMath = static_cast<cublasMath_t>(
        CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    check(cublasSetMathMode(blas, kMath), "starting cuBLAS");
    cudnnHandle_t dnn = nullptr;
    check(cudnnCreate(&dnn), "starting cuDNN");
    dnn_.reset(dnn);
    check(cudnnSetStream(dnn, stream), "starting cuDNN");
    partial_sums_.reset(allocate(kPartialSumBytes, "partial sums", 0));
    kernels_ = make_kernels(stream, partial_sums_.get());
  }
  ~CudaEngine() override {
    cudaStreamSynchronize(copies_.get());
    cudaStreamSynchronize(stream_.get());
  }

  std::unique_lock<std::mutex> enter() override {
    std::unique_lock lock(mutex_);
    check(cudaSetDevice(options_.device), "choosing the device");
    return lock;
  }
  const Kernels& kernels() const override { return *kernels_; }

  void* allocate(size_t bytes, const std::string& what, int64_t batch) override {
    check(cudaSetDevice(options_.device), "choosing the device");
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    if (status == cudaSuccess) {
      book_.taken(memory, bytes, what);
      return memory;
    }
    if (status != cudaErrorMemoryAllocation) check(status, "taking memory of the device");
    cudaGetLastError();  // else the next launch would report it
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for the device's free memory");
    throw OutOfDeviceMemory(describe({what, static_cast<int64_t>(bytes), static_cast<int64_t>(free),
                                      static_cast<int64_t>(total), batch}));
  }
  // Waits for what still uses it.
  void release(void* memory) override {
    cudaFree(memory);
    book_.released(memory);
  }
  std::vector<MemoryUse> memory() const override { return book_.uses(); }

  void upload(void* device, const void* host, size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_.get()),
          "copying to the device");
  }
  void download(void* host, const void* device, size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_.get()),
          "copying from the device");
    synchronize();
  }
  void* allocate_pinned(size_t bytes, const std::string& what) override {
    check(cudaSetDevice(options_.device), "choosing the device");
    void* memory = nullptr;
    const std::string tried =
        "taking " + std::to_string(bytes) + " bytes of pinned memory for " + what;
    const cudaError_t status = cudaMallocHost(&memory, bytes);
    if (status != cudaSuccess) cudaGetLastError();  // else the next launch would report it
    if (status == cudaErrorMemoryAllocation) {
      throw OutOfDeviceMemory("the host's memory is too small: " + tried + " failed: CUDA says \"" +
                              cudaGetErrorString(status) + "\"");
    }
    check(status, tried.c_str());
    pinned_.given(memory, bytes);
    return memory;
  }
  bool is_pinned(const void* data, size_t bytes) const override {
    return pinned_.hold(data, bytes);
  }
  void release_pinned(void* memory) override {
    pinned_.released(memory);
    cudaDeviceSynchronize();
    cudaFreeHost(memory);
  }
  void upload_pinned(Queue queue, void* device, const void* pinned, size_t bytes) override {
    check(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, streams().of(queue)),
          "copying to the device");
  }
  void download_pinned(void* pinned, const void* device, size_t bytes) override {
    check(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream_.get()),
          "copying from the device");
  }
  std::unique_ptr<Mark> make_mark() override { return make_cuda_mark(streams()); }
  std::unique_ptr<Instant> make_instant() override { return make_cuda_instant(stream_.get()); }
  void begin_range(const char* name) override { cuda::begin_range(name); }
  void end_range() override { cuda::end_range(); }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return capture(stream_.get(), work);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_.get()),
          "copying within the device");
  }
  void clear(void* device, size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemsetAsync(device, 0, bytes, stream_.get()), "clearing memory of the device");
  }
  void synchronize() override {
    check(cudaStreamSynchronize(stream_.get()), "waiting for the device");
  }

  // cuBLAS counts column by column: what is row by row is transposed to it, and c' = b' a'.
  void multiply(const Product& p) override {
    const float one = 1, kept = p.add ? 1 : 0;
    const auto columns = static_cast<int>(p.columns), rows = static_cast<int>(p.rows),
               inner = static_cast<int>(p.inner);
    const auto compute =
        options_.tensor_float32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const bool floats = p.a.type == Stored::kFloat32;
    check(cublasGemmEx(blas_.get(), p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                       p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, columns, rows, inner, &one,
                       p.b.data, data_type(p.b.type), p.transpose_b ? inner : columns, p.a.data,
                       data_type(p.a.type), p.transpose_a ? rows : inner, &kept, p.c.data,
                       data_type(p.c.type), columns, floats ? compute : CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT),
          "multiplying matrices");
  }

  std::unique_ptr<Collective> join(const RankGroup& ranks) override {
    return join_with_nccl(ranks, stream_.get());
  }

  // Planning takes cuDNN some tenths of a second; a network has few shapes, and cuts and evaluation
  // have the same.
  std::shared_ptr<PlannedConvolution> plan_convolution(const ConvolutionRequest& request) override {
    const auto [entry, fresh] = convolutions_.try_emplace(key_of(request));
    if (fresh) {
      const Tuning tuning{plans_ ? &*plans_ : nullptr, stream_.get()};
      entry->second = plan_with_cudnn(dnn_.get(), options_, request, tuning);
      if (!entry->second && request.epilogue == Epilogue::kNone) {
        const ConvolutionShape& shape = request.shape;
        log::info(
            "cuDNN has no plan for a convolution of {} to {} channels, {} x {}, in {} groups: a "
            "kernel of ours runs it, more slowly",
            shape.in_channels, shape.out_channels, shape.kernel, shape.kernel, shape.groups);
      }
    }
    return entry->second;
  }

 private:
  // What cuBLAS takes for itself on Hopper (cuBLAS documentation, cublasSetWorkspace); memory of
  // ours, since recordings must not take any.
  static constexpr size_t kBlasWorkspaceBytes = size_t{32} << 20;

  std::string plans_depend_on(const DeviceFacts& facts) const {
    return facts.name + ", driver " + std::to_string(facts.driver_version) + ", cuDNN " +
           std::to_string(cudnnGetVersion()) + (options_.deterministic ? ", deterministic" : "") +
           (options_.tensor_float32 ? ", TF32" : "");
  }
  Streams streams() const { return {stream_.get(), copies_.get()}; }

  const CudaOptions options_;
  std::mutex mutex_;
  MemoryBook book_;
  PinnedRanges pinned_;
  std::optional<PlanCache> plans_;  // none: nothing is timed
  OwnedStream stream_, copies_;
  std::unique_ptr<void, MemoryDeleter> blas_workspace_;
  Owned<cublasHandle_t, BlasDeleter> blas_;
  Owned<cudnnHandle_t, DnnDeleter> dnn_;
  std::unique_ptr<void, MemoryDeleter> partial_sums_;
  std::unique_ptr<Kernels> kernels_;
  std::map<ConvolutionKey, std::shared_ptr<PlannedConvolution>> convolutions_;
};

}  // namespace

std::shared_ptr<Engine> open_engine(const CudaOptions& options) {
  const DeviceFacts facts = gather_facts(options);
  if (const auto why = why_unusable(facts)) throw NoDevice(*why);
  log::info("GPU {}: {}, compute capability {}.{}, driver for CUDA {}.{}", facts.wanted, facts.name,
            facts.capability / 10, facts.capability % 10, facts.driver_version / 1000,
            facts.driver_version % 1000 / 10);
  return std::make_shared<CudaEngine>(options, facts);
}

}  // namespace outrigger::nn::cuda
