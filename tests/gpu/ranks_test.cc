#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../unit/nn/network_run.h"
#include "gpu.h"
#include "nn/cuda/errors.h"
#include "nn/resident.h"

/// NCCL, with one rank on this machine's GPU, and with two where there are two GPUs.
namespace outrigger::nn {
namespace {

using testing::gpu;
using testing::narrow_resnet;

class RanksOnGpu : public testing::OnGpu {};

std::vector<float> some_gradients(const Graph& graph) {
  std::vector<float> values(static_cast<size_t>(graph.parameter_count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) - 8;
  return values;
}

TEST_F(RanksOnGpu, OneAloneSumsToItsOwn) {
  const Graph graph = narrow_resnet();
  const auto resident = gpu().backend->make_resident(graph, {});
  if (!resident->join({0, 1, std::chrono::seconds(60), false, [](std::span<std::byte>) {}}))
    GTEST_SKIP() << "no NCCL";
  const auto expected = some_gradients(graph);
  std::vector<float> sums(expected.size());
  resident->put_gradients(expected);
  resident->sum_over_ranks();
  resident->fetch_gradients(sums);
  EXPECT_EQ(sums, expected);
}

// Whole numbers up to 8 are bfloat16 as they are.
TEST_F(RanksOnGpu, OneAloneSumsInBFloat16Too) {
  const Graph graph = narrow_resnet();
  const auto resident = gpu().backend->make_resident(graph, {});
  if (!resident->join({0, 1, std::chrono::seconds(60), true, [](std::span<std::byte>) {}}))
    GTEST_SKIP() << "no NCCL";
  auto gradients = some_gradients(graph);
  const auto expected = gradients;
  gradients[0] += 1.0f / 1024;
  std::vector<float> sums(expected.size());
  resident->put_gradients(gradients);
  resident->sum_over_ranks();
  resident->fetch_gradients(sums);
  EXPECT_EQ(sums, expected);
}

/// Hands rank 0's bytes to the other.
class Messenger {
 public:
  void from_first(int rank, std::span<std::byte> bytes) {
    if (rank == 0) message_.assign(bytes.begin(), bytes.end());
    barrier_.arrive_and_wait();
    if (rank != 0) std::memcpy(bytes.data(), message_.data(), bytes.size());
  }

 private:
  std::vector<std::byte> message_;
  std::barrier<> barrier_{2};
};

// Which is told as that, and not as a rank that is lost.
TEST_F(RanksOnGpu, TwoOnOneGpuAreToldOfIt) {
  const Graph graph = narrow_resnet();
  const auto second = cuda::make_cuda_backend({});
  if (!gpu().backend->make_resident(graph, {})->join(
          {0, 1, std::chrono::seconds(60), false, [](std::span<std::byte>) {}}))
    GTEST_SKIP() << "no NCCL";
  Messenger messenger;
  std::array<std::string, 2> told;
  const auto run = [&](int rank, const Backend& backend) {
    const auto resident = backend.make_resident(graph, {});
    try {
      resident->join({rank, 2, std::chrono::seconds(30), false,
                      [&](std::span<std::byte> bytes) { messenger.from_first(rank, bytes); }});
    } catch (const cuda::DeviceError& error) {
      told[static_cast<size_t>(rank)] = error.what();
    } catch (const cuda::RankLost& error) {
      ADD_FAILURE() << "rank " << rank << " is told: " << error.what();
    }
  };
  {
    std::jthread other([&] { run(1, *second); });
    run(0, *gpu().backend);
  }
  for (const std::string& text : told) EXPECT_NE(text.find("NCCL says"), std::string::npos) << text;
}

std::unique_ptr<Backend> second_gpu() {
  cuda::CudaOptions options;
  options.device = 1;
  try {
    return cuda::make_cuda_backend(options);
  } catch (const cuda::NoDevice&) {
    return nullptr;
  }
}

TEST_F(RanksOnGpu, TwoSumAndOneAloneIsToldOfTheLoss) {
  const auto second = second_gpu();
  if (second == nullptr) GTEST_SKIP() << "this machine has one GPU";
  const Graph graph = narrow_resnet();
  const auto expected = some_gradients(graph);
  Messenger messenger;
  const auto run = [&](int rank, const Backend& backend) {
    const auto resident = backend.make_resident(graph, {});
    const bool joined =
        resident->join({rank, 2, std::chrono::seconds(10), false,
                        [&](std::span<std::byte> bytes) { messenger.from_first(rank, bytes); }});
    EXPECT_TRUE(joined) << "no NCCL";
    if (!joined) return;
    std::vector<float> sums(expected.size());
    resident->put_gradients(expected);
    resident->sum_over_ranks();
    resident->fetch_gradients(sums);
    for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], 2 * expected[i]) << i;
    if (rank == 0) {
      // The other leaves; this one is not left waiting.
      EXPECT_THROW(
          {
            resident->put_gradients(expected);
            resident->sum_over_ranks();
          },
          cuda::RankLost);
    }
  };
  std::jthread other([&] { run(1, *second); });
  run(0, *gpu().backend);
}

}  // namespace
}  // namespace outrigger::nn
