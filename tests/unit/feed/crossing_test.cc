#include "feed/crossing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/unit/feed/coordinator_fixture.h"

namespace outrigger::feed {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

/// What workers bring to steps whose second micro-batch is cut.
class CrossingTest : public CoordinatorTest {
 protected:
  CrossingTest() {
    feed_.expect({{0, {ElementType::kUint8, {2, 2, 3}, 0}},
                  {kCut, {ElementType::kFloat32, {5}, kNormFloats}}});
  }

  MicroBatch result(uint32_t index, ElementType type, Shape shape, size_t statistics = 0) {
    return {.key = leases_.at(index).key,
            .tensor = std::make_shared<Tensor>(type, std::move(shape)),
            .statistics = std::vector<float>(statistics)};
  }
  MicroBatch packed(ElementType type, int64_t channels) {
    MicroBatch batch = result(1, type, {2, 5}, kNormFloats);
    batch.scales = std::make_shared<Tensor>(ElementType::kFloat32, Shape{channels});
    return batch;
  }
  void bring(const MicroBatch& batch) { feed_.receive(worker_, batch, clock_.now()); }

  static constexpr size_t kNormFloats = 4;
  Coordinator feed_ = make(one_stem_away());
  const WorkerId worker_ = join(feed_, 2);
  const std::vector<Lease> leases_ = sent<Lease>(feed_, worker_);
};

TEST_F(CrossingTest, TakesWhatCrossesAtTheCutOfEachLease) {
  ASSERT_THAT(leases_, SizeIs(2));
  bring(result(0, ElementType::kUint8, {2, 2, 2, 3}));
  bring(result(1, ElementType::kFloat32, {2, 5}, kNormFloats));
  for (uint32_t index = 0; index < 2; ++index)
    EXPECT_TRUE(feed_.try_take(0, index, clock_.now())) << index;
}

TEST_F(CrossingTest, TakesActivationsThatStayWholeNumbers) {
  bring(packed(ElementType::kInt8, 5));
  EXPECT_TRUE(feed_.try_take(0, 1, clock_.now()));
}

TEST_F(CrossingTest, RefusesWhatWouldOverrunTheServersArrays) {
  EXPECT_THROW(bring(result(0, ElementType::kUint8, {2, 9000, 9000, 3})), InvalidInput);
  EXPECT_THROW(bring(result(0, ElementType::kFloat32, {2, 2, 2, 3})), InvalidInput);
  EXPECT_THROW(bring(result(0, ElementType::kUint8, {2, 2, 2, 3}, 1)), InvalidInput);
  EXPECT_THROW(bring(result(1, ElementType::kFloat32, {2, 6}, kNormFloats)), InvalidInput);
  EXPECT_THROW(bring(result(1, ElementType::kBFloat16, {2, 5}, kNormFloats)), InvalidInput);
  for (const size_t statistics : {size_t{0}, kNormFloats - 1, size_t{1} << 20})
    EXPECT_THROW(bring(result(1, ElementType::kFloat32, {2, 5}, statistics)), InvalidInput);
  EXPECT_THROW(bring(packed(ElementType::kInt8, 4)), InvalidInput);
  EXPECT_THROW(bring(packed(ElementType::kFloat32, 5)), InvalidInput);
}

TEST_F(CrossingTest, ARefusedResultIsStillWantedAndNamesWhatItIs) {
  try {
    bring(result(1, ElementType::kFloat32, {2, 7}, 9));
    FAIL() << "seven features at a cut of five";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("{2, 7} of float32 with 9 statistics"));
    EXPECT_THAT(error.what(), HasSubstr("{2, 5} of float32 with 4 statistics"));
  }
  EXPECT_FALSE(feed_.try_take(0, 1, clock_.now()));
  feed_.lose_worker(worker_, clock_.now());
  EXPECT_THAT(sent<Lease>(feed_, join(feed_, 2)), SizeIs(2));
}

TEST_F(CrossingTest, PixelsOfAnEvaluationAreHeldToTheSame) {
  feed_.begin_evaluation(dataset_, 3);
  const WorkerId worker = join(feed_, 100);
  for (const Lease& lease : sent<Lease>(feed_, worker)) {
    if (lease.kind != WorkKind::kEvaluate) continue;
    const auto rows = static_cast<int64_t>(lease.samples.size());
    const auto of_size = [&](int64_t side) {
      return MicroBatch{
          .key = lease.key,
          .tensor = std::make_shared<Tensor>(ElementType::kUint8, Shape{rows, side, side, 3})};
    };
    EXPECT_THROW(feed_.receive(worker, of_size(200), clock_.now()), InvalidInput);
    EXPECT_NO_THROW(feed_.receive(worker, of_size(2), clock_.now()));
  }
  EXPECT_TRUE(feed_.try_take_evaluation(0, clock_.now()));
}

}  // namespace
}  // namespace outrigger::feed
