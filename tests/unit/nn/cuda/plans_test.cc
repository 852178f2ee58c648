#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host_engine.h"
#include "nn/cuda/device/described.h"
#include "nn/cuda/errors.h"
#include "nn/cuda/program.h"
#include "nn/models.h"

/// What cuDNN has for the convolutions of our models, on GPUs that are only described to it.
namespace outrigger::nn::cuda {
namespace {

struct DescribedGpu {
  const char* name;
  int capability;
  int multiprocessors, shared_memory, blocks, threads;  // of a multiprocessor, the last three
  int64_t cache, memory;
};

// From NVIDIA's data sheets and programming guide (CUDA C++ Programming Guide, "Compute
// Capabilities").
constexpr DescribedGpu kGpus[] = {
    {"TeslaT4", 75, 40, 65536, 16, 1024, 4 << 20, 15828320256},
    {"A100", 80, 108, 166912, 32, 2048, 40 << 20, 84987740160},
    {"H200", 90, 132, 232448, 32, 2048, 60 << 20, 150754820096},
    {"B200", 100, 148, 232448, 32, 2048, 126 << 20, 192000000000},
};

// As cuDNN writes its own.
std::string json_of(const DescribedGpu& gpu) {
  const auto field = [](const char* key, int64_t value) {
    return "\"" + std::string(key) + "\":" + std::to_string(value) + ",";
  };
  return "{" + field("deviceVer", 10 * gpu.capability) + field("driverVer", 13000) +
         field("cudaDeviceId", 0) + field("totalGlobalMem", gpu.memory) +
         "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64]," +
         field("regsPerBlock", 65536) + field("multiProcessorCount", gpu.multiprocessors) +
         field("warpSize", 32) + field("maxSharedMemoryPerBlock", 49152) +
         field("maxSharedMemoryPerBlockOptin", gpu.shared_memory) +
         field("reservedSharedMemoryPerBlock", 1024) + field("maxRegistersPerSM", 65536) +
         field("maxCtasPerSM", gpu.blocks) + field("maxThreadsPerBlock", 1024) +
         field("maxThreadsPerSM", gpu.threads) + field("pciDeviceId", 0) + field("isTccDriver", 0) +
         field("supportCoopLaunch", 1) + field("smClockRateKHz", 1500000) +
         field("memClockRateKHz", 3000000) + field("l2CacheSize", gpu.cache) + "\"deviceName\":\"" +
         gpu.name + "\"}";
}

std::vector<ConvolutionRequest> convolutions_of(const std::string& model, Precision precision) {
  ModelOptions options{.name = model, .classes = 10};
  if (model == "lenet5") options.height = options.width = 28;
  std::vector<ConvolutionRequest> wanted;
  const auto engine = testing::make_host_engine(
      [&](const ConvolutionRequest& request) { wanted.push_back(request); });
  const Graph graph = build_model(options);
  const CudaProgram program(graph, {.segment = graph.whole(), .batch = 32, .precision = precision},
                            engine);
  return wanted;
}

std::string told(const std::string& model, const ConvolutionRequest& request) {
  const ConvolutionShape& s = request.shape;
  return model + ": " + std::to_string(s.in_channels) + " to " + std::to_string(s.out_channels) +
         " channels, " + std::to_string(s.kernel) + " x " + std::to_string(s.kernel) + ", stride " +
         std::to_string(s.stride) + ", type " + std::to_string(static_cast<int>(s.type)) +
         ", pass " + std::to_string(static_cast<int>(request.pass)) + ", epilogue " +
         std::to_string(static_cast<int>(request.epilogue));
}

class CudnnPlans : public ::testing::TestWithParam<DescribedGpu> {};

TEST_P(CudnnPlans, AreThereForEveryConvolutionOfOurModels) {
  const std::string gpu = json_of(GetParam());
  for (const Precision precision :
       {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat16}) {
    // Float16 is for GPUs without bfloat16; planning takes its time.
    const bool has_bfloat16 = GetParam().capability >= 80;
    if (precision == (has_bfloat16 ? Precision::kFloat16 : Precision::kBFloat16)) continue;
    for (const std::string& model : model_names()) {
      const auto wanted = convolutions_of(model, precision);
      EXPECT_FALSE(wanted.empty());
      for (const ConvolutionRequest& request : wanted) {
        if (request.epilogue != Epilogue::kNone) continue;
        EXPECT_NE(plan_for_described(gpu, {}, request), nullptr) << told(model, request);
      }
    }
  }
}

// What is compiled when it is wanted, and so has plans for more, needs NVRTC and a driver, which
// are not here. cuDNN's own kernels have these.
bool is_fused(const DescribedGpu& gpu, const ConvolutionRequest& request) {
  if (has_bias(request.epilogue)) return true;
  const ConvolutionShape& shape = request.shape;
  return gpu.capability >= 80 && shape.in_channels % 8 == 0 && shape.groups == 1;
}

TEST_P(CudnnPlans, FuseABiasAndInFloat16StatisticsToo) {
  const std::string gpu = json_of(GetParam());
  int biases = 0, statistics = 0;
  for (const Precision precision :
       {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat16}) {
    if (precision == Precision::kBFloat16 && GetParam().capability < 80) continue;
    for (const std::string& model : model_names()) {
      for (const ConvolutionRequest& request : convolutions_of(model, precision)) {
        if (request.epilogue == Epilogue::kNone) continue;
        // Statistics have other bits every time.
        const bool deterministic = has_bias(request.epilogue);
        const bool is_there =
            plan_for_described(gpu, {.deterministic = deterministic}, request) != nullptr;
        if (!deterministic) {
          EXPECT_EQ(plan_for_described(gpu, {}, request), nullptr);
        }
        EXPECT_EQ(is_there, is_fused(GetParam(), request)) << told(model, request);
        if (is_there) ++(has_bias(request.epilogue) ? biases : statistics);
      }
    }
  }
  EXPECT_EQ(biases, GetParam().capability < 80 ? 4 : 6) << "lenet5 has two, in each type";
  EXPECT_EQ(statistics > 0, GetParam().capability >= 80);
}

INSTANTIATE_TEST_SUITE_P(Gpus, CudnnPlans, ::testing::ValuesIn(kGpus),
                         [](const auto& gpu) { return gpu.param.name; });

TEST(DescribedGpus, HaveAReadableDescription) {
  EXPECT_THROW(plan_for_described("no GPU", {}, {}), DeviceError);
}

}  // namespace
}  // namespace outrigger::nn::cuda
