#include "nn/cuda/work_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/error.h"
#include "host_engine.h"
#include "network_run.h"
#include "nn/cuda/compiler.h"
#include "nn/cuda/errors.h"
#include "nn/graph_builder.h"
#include "nn/resident.h"

namespace outrigger::nn::cuda {
namespace {

class WorkSpaceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Program> compile(Segment segment, int64_t groups) const {
    return compiler_.compile(graph_, {.segment = segment,
                                      .batch = 2 * groups,
                                      .input_gradient = segment.begin > 0,
                                      .work_space = space_,
                                      .groups = groups});
  }
  int64_t taken() const { return sum_of(engine_->memory()); }
  static int64_t sum_of(const std::vector<MemoryUse>& uses) {
    int64_t all = 0;
    for (const MemoryUse& use : uses) all += use.bytes;
    return all;
  }

  const Graph graph_ = nn::testing::narrow_resnet();
  const std::shared_ptr<Engine> engine_ = testing::make_host_engine();
  const Compiler compiler_{engine_, false};
  const std::shared_ptr<CudaWorkSpace> space_ = std::make_shared<CudaWorkSpace>(engine_);
};

TEST_F(WorkSpaceTest, IsAsLargeAsTheLargestOfItsProgramsWants) {
  const auto large = compile(graph_.whole(), 4);
  const int64_t one = taken();
  const size_t bytes = space_->bytes();
  const auto medium = compile(graph_.whole(), 2);
  const auto small = compile(graph_.whole(), 1);
  EXPECT_EQ(space_->bytes(), bytes);
  EXPECT_EQ(taken(), one);
  const auto weights = small->new_weights();
  EXPECT_EQ(taken(), one) << "weights are there";
  const auto apart = compiler_.compile(graph_, {.segment = graph_.whole(), .batch = 2});
  EXPECT_GT(taken(), one);
}

TEST_F(WorkSpaceTest, GrowsForALargerOne) {
  const auto small = compile(graph_.whole(), 1);
  const size_t bytes = space_->bytes();
  const uint64_t moves = space_->moves();
  const auto large = compile(graph_.whole(), 4);
  EXPECT_GT(space_->bytes(), bytes);
  EXPECT_GT(space_->moves(), moves);
}

TEST_F(WorkSpaceTest, StaysAsItWasWhereThereIsNoRoom) {
  const auto program = compile(graph_.whole(), 1);
  const size_t bytes = space_->bytes();
  const auto lock = engine_->enter();
  EXPECT_THROW(space_->reserve(CudaWorkSpace::kTape, size_t{1} << 50, "too much"),
               OutOfDeviceMemory);
  EXPECT_EQ(space_->bytes(), bytes);
  EXPECT_NE(space_->data(CudaWorkSpace::kTape), nullptr);
}

// What has addresses in the space is put down anew once it has moved.
TEST_F(WorkSpaceTest, RunsItsRecordedPassesAfterItHasMoved) {
  const auto values = nn::testing::draw_network_values(graph_, 2);
  const auto backend = testing::make_host_backend();
  const auto space = std::static_pointer_cast<CudaWorkSpace>(backend->make_work_space());
  ThreadPool threads(1);
  const auto compile = [&](int64_t groups) {
    return backend->compile(
        graph_,
        {.segment = graph_.whole(), .batch = 2 * groups, .work_space = space, .groups = groups},
        threads);
  };
  const auto small = compile(1);
  const auto weights = small->new_weights();
  const auto tape = small->new_tape();
  const auto resident = backend->make_resident(graph_, {});
  std::vector<float> parameters = values.parameters, momentum(parameters.size());
  resident->put({parameters, momentum, {}});
  std::vector<float> statistics(values.buffers.size());
  const auto gradients_of_pass = [&] {
    std::vector<float> gradients(parameters.size());
    const ResidentPass pass{*small, *weights, *tape};
    const ForwardInput in = nn::testing::input_of(*small, values);
    resident->load(*small, *weights, values.buffers);
    resident->clear_gradients();
    resident->stage(pass, std::span(&in, 1));
    resident->train(pass, {statistics, {}}, 1);
    resident->collect();
    resident->fetch_gradients(gradients);
    return gradients;
  };
  const auto expected = gradients_of_pass();
  EXPECT_EQ(gradients_of_pass(), expected) << "as a recording";
  const uint64_t moves = space->moves();
  const auto large = compile(4);
  ASSERT_GT(space->moves(), moves);
  EXPECT_EQ(gradients_of_pass(), expected);
  EXPECT_EQ(gradients_of_pass(), expected);
  std::vector<float> some(5);
  resident->fetch_parameters({2, 5}, some);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), parameters.begin() + 2));
}

// Of 2^32 weights, which kernels would count from the beginning again.
TEST_F(WorkSpaceTest, RefusesAnArcFaceOfMoreWeightsThanAGpuCounts) {
  GraphBuilder builder("faces", {4, 4, 2});
  builder.add("normalize", Normalize{{0.5f, 0.5f}, {0.5f, 0.5f}});
  builder.add("flatten", Flatten{});
  builder.add("arcface", ArcFace{.classes = int64_t{1} << 27});
  const Graph faces = builder.build();
  try {
    compiler_.compile(faces, {.segment = faces.whole(), .batch = 2, .mode = Mode::kInference});
    FAIL() << "it was taken";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("134217727 classes may be at most"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace outrigger::nn::cuda
