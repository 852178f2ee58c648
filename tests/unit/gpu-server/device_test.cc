#include "gpu-server/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <new>

#include "common/file.h"
#include "common/thread_pool.h"
#include "nn/cuda/backend.h"
#include "nn/cuda/errors.h"
#include "nn/graph_builder.h"
#include "nn/resident.h"
#include "tests/unit/api/sample_job.h"

namespace outrigger::gpu_server {
namespace {

using api::DeviceChoice;
using api::ExitCode;

api::Launch told(DeviceChoice device) {
  api::Launch launch;
  launch.device = device;
  return launch;
}

// How opening a device fails; kDone where it does not.
ExitCode refusal(DeviceChoice device, int gpus) {
  auto job = api::sample_job();
  job.spec.server.gpus = gpus;
  try {
    open_device(told(device), job);
    return ExitCode::kDone;
  } catch (const api::Failure& failure) {
    return failure.code();
  }
}

/// Of a small network, of which a GPU takes 40 ms, and 10 ms where the convolution is away.
Emulation emulated_gpu(const TemporaryDirectory& folder) {
  api::Launch launch;
  launch.emulate = folder.path() / "profile.json";
  write_file_atomically(*launch.emulate, R"({"samples": 8, "batch": 4, "microBatch": 2,
      "microBatches": 2, "staleness": 0, "decode": 0.1, "pixels": 32, "optimizer": 0.02,
      "parameters": 216, "copies": 5, "leastServerPercent": 0,
      "layers": [{"name": "normalize", "forward": 0, "backward": 0, "kept": 0, "weights": 0},
                 {"name": "conv", "forward": 1, "backward": 2, "kept": 0, "weights": 0}],
      "cuts": [{"layers": 0, "name": "Input", "trains": false, "stemForward": 0, "stemBackward": 0,
                "head": 0.04, "activations": 0, "gradients": 0, "weights": 0, "serverPercent": 100,
                "stemKept": 0, "stemFixed": 0, "headKept": 0, "headFixed": 0, "crossing": 0,
                "deviceStem": 0},
               {"layers": 2, "name": "conv", "trains": true, "stemForward": 1, "stemBackward": 2,
                "head": 0.01, "activations": 64, "gradients": 64, "weights": 40, "serverPercent": 50,
                "stemKept": 0, "stemFixed": 0, "headKept": 0, "headFixed": 0, "crossing": 64,
                "deviceStem": 0.03}]})");
  return Emulation(launch);
}

nn::Graph graph_on_gpu() {
  nn::GraphBuilder builder("small", {4, 4, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.25f}});
  builder.add("conv", nn::Convolution{.out_channels = 2, .kernel = 3, .padding = 1});
  builder.add("flatten", nn::Flatten{});
  builder.add("fc", nn::Linear{.out_features = 3});
  return builder.build();
}

/// A GPU whose indexes do not reach over a pass of more than so many micro-batches, and what was
/// compiled for it.
class ShortIndexes final : public nn::Backend {
 public:
  struct Compiled {
    int begin = 0, end = 0;
    nn::Mode mode = nn::Mode::kTraining;
    int64_t groups = 1;
    bool operator==(const Compiled&) const = default;
  };
  ShortIndexes(std::unique_ptr<nn::Backend> backend, int64_t most)
      : backend_(std::move(backend)), most_(most) {}
  const std::vector<Compiled>& compiled() const { return compiled_; }
  std::string name() const override { return backend_->name(); }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& threads) const override {
    if (options.groups > most_) throw InvalidInput("a micro-batch is too large for the GPU");
    compiled_.push_back({options.segment.begin, options.segment.end, options.mode, options.groups});
    nn::ProgramOptions known = options;  // a profile has no times of what only evaluates
    if (options.mode == nn::Mode::kInference) known.segment = graph.whole();
    return backend_->compile(graph, known, threads);
  }
  std::unique_ptr<nn::Resident> make_resident(const nn::Graph& graph,
                                              const nn::ResidentOptions& options) const override {
    return backend_->make_resident(graph, options);
  }

 private:
  const std::unique_ptr<nn::Backend> backend_;
  const int64_t most_;
  mutable std::vector<Compiled> compiled_;
};

class MicroBatchesAtOnce : public ::testing::Test {
 protected:
  uint32_t at_once(int64_t most) {
    auto backend = std::make_unique<ShortIndexes>(make_emulated_device(emulation_), most);
    seen_ = backend.get();
    device_.backend = std::move(backend);
    device_.is_gpu = true;
    training::TrainerOptions options;
    options.device.micro_batch = 2;
    options.micro_batches = 7;
    ThreadPool threads(1);
    return micro_batches_at_once(device_, graph_, options, threads);
  }

  using Compiled = ShortIndexes::Compiled;
  const nn::Graph graph_ = graph_on_gpu();
  const TemporaryDirectory folder_{"short-indexes"};
  Emulation emulation_ = emulated_gpu(folder_);
  OpenDevice device_;
  const ShortIndexes* seen_ = nullptr;
};

TEST_F(MicroBatchesAtOnce, AreFewerWhereAPassOfMoreIsTooLargeForTheGpu) {
  EXPECT_EQ(at_once(2), 2u);
}

TEST_F(MicroBatchesAtOnce, AreNoneWhereOneAloneIsTooLarge) {
  EXPECT_THROW(at_once(0), InvalidInput);
}

TEST_F(MicroBatchesAtOnce, AreTriedInAllSizesThatAStepHasAndBesideItsEvaluation) {
  device_.evaluates_at_once = 2;
  device_.cut = "conv";
  EXPECT_EQ(at_once(4), 4u);
  const int end = graph_.size(), embedding = graph_.embedding_layer() + 1;
  EXPECT_THAT(seen_->compiled(),
              testing::UnorderedElementsAre(Compiled{0, end, nn::Mode::kTraining, 4},
                                            Compiled{0, end, nn::Mode::kTraining, 2},
                                            Compiled{0, end, nn::Mode::kTraining, 1},
                                            Compiled{2, end, nn::Mode::kTraining, 4},
                                            Compiled{0, embedding, nn::Mode::kInference, 1},
                                            Compiled{embedding, end, nn::Mode::kInference, 1}));
}

TEST(EmulatedGpu, RunsPassesOneBehindTheOtherWhileTheHostGoesOn) {
  const nn::Graph graph = graph_on_gpu();
  const TemporaryDirectory folder("emulated-gpu");
  Emulation emulation = emulated_gpu(folder);
  const auto backend = make_emulated_device(emulation);
  const auto resident = backend->make_resident(graph, {});
  ASSERT_NE(resident, nullptr);
  ThreadPool threads(1);
  const auto whole =
      backend->compile(graph, {.segment = graph.whole(), .batch = 4, .groups = 2}, threads);
  const auto head = backend->compile(graph, {.segment = {2, graph.size()}, .batch = 2}, threads);
  const auto weights = whole->new_weights();
  const auto tape = whole->new_tape();
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [&] { return to_seconds(std::chrono::steady_clock::now() - begin); };
  resident->train({*whole, *weights, *tape}, {}, 1);
  resident->train({*head, *weights, *tape}, {}, 1);
  EXPECT_LT(since(), 0.08) << "both are queued";
  EXPECT_NEAR(resident->collect().loss_sum, 4 * std::log(3), 1e-9);
  EXPECT_GE(since(), 0.08) << "two micro-batches of 40 ms";
  resident->collect();
  EXPECT_GE(since(), 0.09);
  resident->update({});
  EXPECT_GE(since(), 0.11);
  const nn::ResidentTimes times = resident->take_times();
  EXPECT_NEAR(times.forward + times.backward, 0.09, 1e-9);
  EXPECT_NEAR(times.optimizer, 0.02, 1e-9);
}

TEST(WantsGpu, FollowsTheJobUnlessItIsTold) {
  auto job = api::sample_job();
  EXPECT_FALSE(wants_gpu(told(DeviceChoice::kAuto), job));
  EXPECT_TRUE(wants_gpu(told(DeviceChoice::kCuda), job));
  job.spec.server.gpus = 2;
  EXPECT_TRUE(wants_gpu(told(DeviceChoice::kAuto), job));
  EXPECT_FALSE(wants_gpu(told(DeviceChoice::kCpu), job));
}

TEST(OpenDevice, TrainsOnTheCpuWhereNoGpuIsAskedForOrItIsTold) {
  EXPECT_EQ(refusal(DeviceChoice::kAuto, 0), ExitCode::kDone);
  EXPECT_EQ(refusal(DeviceChoice::kCpu, 1), ExitCode::kDone);
}

TEST(OpenDevice, RefusesAGpuInABuildWithoutCuda) {
  if (nn::cuda::is_built()) GTEST_SKIP() << "this build has CUDA";
  EXPECT_EQ(refusal(DeviceChoice::kAuto, 1), ExitCode::kNotSupported);
  EXPECT_EQ(refusal(DeviceChoice::kCuda, 0), ExitCode::kNotSupported);
}

TEST(DeviceErrors, HaveExitCodesThatLaunchersKnow) {
  const auto code_of = [](const std::function<ExitCode()>& work) {
    try {
      return translate_device_errors(work);
    } catch (const api::Failure& failure) {
      return failure.code();
    }
  };
  EXPECT_EQ(code_of([] { return ExitCode::kStopped; }), ExitCode::kStopped);
  EXPECT_EQ(code_of([]() -> ExitCode { throw nn::cuda::OutOfDeviceMemory("full"); }),
            ExitCode::kOutOfMemory);
  EXPECT_EQ(code_of([]() -> ExitCode { throw nn::cuda::RankLost("gone"); }), ExitCode::kPeerLost);
  EXPECT_EQ(code_of([]() -> ExitCode { throw nn::cuda::DeviceError("gone"); }),
            ExitCode::kNoDevice);
}

TEST(DeviceErrors, OfTheHostsMemoryAreASentenceWithTheSameExitCode) {
  try {
    translate_device_errors([]() -> ExitCode { throw std::bad_alloc(); });
    FAIL() << "nothing was thrown";
  } catch (const api::Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::kOutOfMemory);
    EXPECT_THAT(failure.what(), testing::HasSubstr("microBatchSize"));
  }
}

}  // namespace
}  // namespace outrigger::gpu_server
