#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/error.h"
#include "tests/unit/feed/coordinator_fixture.h"

namespace outrigger::feed {
namespace {

using std::chrono::seconds;

/// A step whose head has run, and whose stem nobody holds any more.
class BackwardLeaseTest : public CoordinatorTest {
 protected:
  BackwardLeaseTest() {
    const WorkerId first = join(feed_, 2);
    for (const Lease& lease : sent<Lease>(feed_, first)) {
      if (lease.cut > 0) forward_ = lease;
      deliver(feed_, first, lease);
    }
    for (uint32_t index = 0; index < 2; ++index)
      EXPECT_TRUE(feed_.try_take(0, index, clock_.now())) << index;
    feed_.head_done(0, 1, gradient_, clock_.now());
    feed_.lose_worker(first, clock_.now());
  }
  /// The one that the worker is given.
  std::optional<Lease> backward_of(WorkerId worker) {
    const auto leases = sent<Lease>(feed_, worker);
    const auto found = std::ranges::find(leases, WorkKind::kBackward, &Lease::kind);
    return found == leases.end() ? std::nullopt : std::optional(*found);
  }
  static std::vector<uint32_t> ids(const Lease& lease) {
    std::vector<uint32_t> ids;
    for (const LeaseSample& sample : lease.samples) ids.push_back(sample.id);
    return ids;
  }

  Coordinator feed_ = make(one_stem_away());
  Lease forward_;
};

TEST_F(BackwardLeaseTest, ThatFindsABrokenImageIsDoneAgainWithTheSameSamples) {
  const WorkerId second = join(feed_, 1);
  const auto lease = backward_of(second);
  ASSERT_TRUE(lease);
  EXPECT_EQ(ids(*lease), ids(forward_));
  feed_.receive(second, Broken{lease->key, {{1, "no image"}}}, clock_.now());
  EXPECT_THAT(feed_.broken(), testing::IsEmpty()) << "it was one when the head ran";
  const auto again = backward_of(join(feed_, 1));
  ASSERT_TRUE(again);
  EXPECT_EQ(ids(*again), ids(forward_)) << "which the gradient is of";
  EXPECT_EQ(again->cut_gradient, gradient_);
}

TEST_F(BackwardLeaseTest, ThatFindsBrokenImagesAgainAndAgainFailsTheJob) {
  const WorkerId worker = join(feed_, 1);
  for (int i = 0; i < 3; ++i) {
    const auto lease = backward_of(worker);
    ASSERT_TRUE(lease) << i;
    feed_.receive(worker, Broken{lease->key, {{1, "no image"}}}, clock_.now());
    clock_.advance(seconds(6));
    feed_.tick(clock_.now());
  }
  try {
    feed_.try_take_gradient(0, 1, clock_.now());
    FAIL() << "two reads may fail";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr(forward_.samples[1].sample.path + " was an image"));
  }
}

}  // namespace
}  // namespace outrigger::feed
