#include "gpu-server/ranks/broken_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "tests/fakes/thread_reducer.h"

namespace outrigger::gpu_server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<uint32_t>;

data::Dataset twenty_images() {
  data::Dataset dataset;
  dataset.set_classes({"a"});
  dataset.begin_container("", false);
  for (int i = 0; i < 20; ++i) dataset.add_file("image" + std::to_string(i), 0);
  dataset.finish();
  return dataset;
}

class BrokenSamplesOfRanks : public testing::Test {
 protected:
  BrokenSamples samples(double max_bad_fraction) const { return {dataset_, max_bad_fraction, {7}}; }
  /// Ranks in threads; each has found `found[rank]`.
  static void share(const std::vector<Ids>& found,
                    const std::function<void(Agreement&, const Ids& own)>& rank_does) {
    fakes::RankMeeting meeting(static_cast<uint32_t>(found.size()));
    std::vector<std::jthread> ranks;
    for (uint32_t rank = 0; rank < found.size(); ++rank) {
      ranks.emplace_back([&, rank] {
        fakes::ThreadReducer reducer(meeting, rank);
        Agreement agreement(&reducer);
        rank_does(agreement, found[rank]);
      });
    }
  }
  const data::Dataset dataset_ = twenty_images();
};

TEST_F(BrokenSamplesOfRanks, AreKnownToAllOnceAnyHasFoundThem) {
  constexpr uint32_t kBeyondFloat = (1U << 24) + 1;
  share({{7}, {3, 7}, {5, 7, kBeyondFloat}}, [&](Agreement& agreement, const Ids& own) {
    BrokenSamples broken = samples(0.5);
    EXPECT_EQ(broken.has_news(own), own.size() > 1);
    broken.share(agreement, own);
    EXPECT_FALSE(broken.has_news(own));
    EXPECT_THAT(broken.with(own), ElementsAre(3, 5, 7, kBeyondFloat));
  });
}

TEST_F(BrokenSamplesOfRanks, AreAllCountedForTheJobsLimit) {
  share({{7}, {3, 7}, {5, 7}}, [&](Agreement& agreement, const Ids& own) {
    BrokenSamples broken = samples(0.1);  // two
    try {
      broken.share(agreement, own);
      ADD_FAILURE() << "three are too many";
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), HasSubstr("3 of 20 samples are broken, over all ranks; "
                                          "data.maxBadFraction allows 2:\n  image3\n  image5"));
    }
  });
}

TEST_F(BrokenSamplesOfRanks, TheSameOneIsCountedOnce) {
  share({{3, 7}, {3, 7}}, [&](Agreement& agreement, const Ids& own) {
    BrokenSamples broken = samples(0.1);
    broken.share(agreement, own);
    EXPECT_THAT(broken.with({}), ElementsAre(3, 7));
  });
}

TEST_F(BrokenSamplesOfRanks, OneRankSavesWhatItFoundItself) {
  EXPECT_THAT(samples(0.1).with(Ids{3, 7}), ElementsAre(3, 7));
}

}  // namespace
}  // namespace outrigger::gpu_server
