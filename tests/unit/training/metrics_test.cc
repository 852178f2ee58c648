#include "training/evaluation/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "common/error.h"
#include "common/random.h"
#include "common/thread_pool.h"
#include "training/evaluation/evaluation.h"
#include "training/evaluation/verification.h"

namespace outrigger::training {
namespace {

/// A point on the unit circle: cosines between rows are cosines of the differences of their angles.
void add_angle(std::vector<float>& values, double degrees, float length = 1) {
  const double radians = degrees * 3.14159265358979323846 / 180;
  values.push_back(length * static_cast<float>(std::cos(radians)));
  values.push_back(length * static_cast<float>(std::sin(radians)));
}

/// Embeddings of `people` people around random centres: the more `noise`, the harder.
struct Crowd {
  std::vector<float> values;
  std::vector<int32_t> labels;
  static constexpr int64_t kFeatures = 8;

  Crowd(int people, int photos, float noise) {
    for (int person = 0; person < people; ++person) {
      RandomStream centre(7, RandomUse::kSyntheticData, static_cast<uint64_t>(person));
      std::vector<float> middle;
      for (int64_t f = 0; f < kFeatures; ++f) middle.push_back(centre.normal());
      for (int photo = 0; photo < photos; ++photo) {
        RandomStream random(7, RandomUse::kSyntheticData, static_cast<uint64_t>(person),
                            static_cast<uint32_t>(photo) + 1);
        for (const float m : middle) values.push_back(m + noise * random.normal());
        labels.push_back(person);
      }
    }
  }
  LabelledRows rows() const { return {values, kFeatures, labels}; }
};

TEST(Normalized, ScalesRowsToLengthOneAndLeavesZeros) {
  const std::vector<float> values = {3, 4, 0, 0};
  const std::vector<float> unit = normalized(values, 2);
  EXPECT_FLOAT_EQ(unit[0], 0.6f);
  EXPECT_FLOAT_EQ(unit[1], 0.8f);
  EXPECT_EQ(unit[2], 0);
  EXPECT_EQ(unit[3], 0);
}

TEST(Normalized, NamesTheRowThatIsNotFinite) {
  const std::vector<float> values = {1, 0, std::numeric_limits<float>::quiet_NaN(), 0};
  try {
    normalized(values, 2);
    FAIL() << "a NaN passed";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("embedding 1"), std::string::npos) << error.what();
  }
}

TEST(DrawPairs, AreDistinctBalancedInEveryFoldAndTrueToTheLabels) {
  const Crowd crowd(40, 5, 1);
  const auto pairs = draw_pairs(crowd.labels, {.pairs = 600, .folds = 10, .seed = 3});
  ASSERT_EQ(pairs.size(), 600u);
  std::set<std::pair<int64_t, int64_t>> seen;
  for (size_t fold = 0; fold < 10; ++fold) {
    int same = 0;
    for (size_t i = fold * 60; i < (fold + 1) * 60; ++i) {
      const Pair& p = pairs[i];
      EXPECT_NE(p.first, p.second);
      EXPECT_EQ(p.same, crowd.labels[static_cast<size_t>(p.first)] ==
                            crowd.labels[static_cast<size_t>(p.second)]);
      EXPECT_TRUE(seen.insert(std::minmax(p.first, p.second)).second);
      same += p.same;
    }
    EXPECT_EQ(same, 30);
  }
}

TEST(DrawPairs, ReachEveryPairThereIs) {
  const std::vector<int32_t> labels = {1, 0, 1, 0, 1};  // 4 pairs of one person, 6 of two
  const auto pairs = draw_pairs(labels, {.pairs = 100, .folds = 2, .seed = 1});
  EXPECT_EQ(pairs.size(), 8u);
}

TEST(DrawPairs, DependOnTheSeedAlone) {
  const Crowd crowd(10, 6, 1);
  const auto key = [&](uint64_t seed) {
    std::vector<int64_t> flat;
    for (const Pair& p : draw_pairs(crowd.labels, {.pairs = 60, .seed = seed})) {
      flat.insert(flat.end(), {p.first, p.second});
    }
    return flat;
  };
  EXPECT_EQ(key(1), key(1));
  EXPECT_NE(key(1), key(2));
}

TEST(DrawPairs, RefuseLabelsThatGiveTooFew) {
  const std::vector<int32_t> alone = {0, 1, 2, 3};
  EXPECT_THROW(draw_pairs(alone), InvalidInput);
  const std::vector<int32_t> one_person = {0, 0, 0, 0, 0, 0};
  EXPECT_THROW(draw_pairs(one_person), InvalidInput);
}

TEST(Verify, IsPerfectWherePeopleAreApart) {
  std::vector<float> values;
  std::vector<int32_t> labels;
  for (int person = 0; person < 4; ++person) {
    for (int photo = 0; photo < 5; ++photo) {
      add_angle(values, person * 90 + photo * 2,
                static_cast<float>(photo + 1));  // lengths must not matter
      labels.push_back(person);
    }
  }
  const LabelledRows rows{values, 2, labels};
  const Verification result = verify(rows, draw_pairs(labels));
  EXPECT_DOUBLE_EQ(result.accuracy, 1.0);
  EXPECT_NEAR(result.deviation, 0.0, 1e-7);
  // Photos of one person are at most 8 degrees apart, of two at least 82.
  EXPECT_GT(result.threshold, std::cos(82 * 3.1416 / 180));
  EXPECT_LT(result.threshold, std::cos(8 * 3.1416 / 180));
  EXPECT_FALSE(result.true_accept_rate.has_value());
}

TEST(Verify, ChoosesEachThresholdOnTheOtherFolds) {
  // Cosines, worked by hand: fold 0 has same 1.0 and different 0.5, fold 1 has same 0.5 and
  // different 0. Judged with fold 1's threshold (0.25) fold 0's different pair is wrong; with fold
  // 0's (0.75) fold 1's same pair is.
  std::vector<float> values;
  for (const double angle : {0.0, 0.0, 60.0, 90.0}) add_angle(values, angle);
  const std::vector<int32_t> labels = {0, 0, 0, 1};
  const std::vector<Pair> pairs = {{0, 1, true}, {0, 2, false}, {0, 2, true}, {0, 3, false}};
  const Verification result = verify({values, 2, labels}, pairs, 2);
  EXPECT_DOUBLE_EQ(result.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(result.deviation, 0.0);
  EXPECT_NEAR(result.threshold, (0.25 + 0.75) / 2, 1e-6);
  EXPECT_EQ(result.pairs, 4);
}

TEST(Verify, DeviationIsThatOfThePopulationOfFolds) {
  // Fold 0 (different at cosine 0) is judged rightly with fold 1's threshold (0.97), fold 1
  // (different at 0.94) half with fold 0's (0.5): accuracies 1 and 0.5, mean 0.75, deviation 0.25.
  std::vector<float> values;
  for (const double angle : {0.0, 0.0, 90.0, 20.0}) add_angle(values, angle);
  const std::vector<int32_t> labels = {0, 0, 1, 1};
  const std::vector<Pair> pairs = {{0, 1, true}, {0, 2, false}, {0, 1, true}, {0, 3, false}};
  const Verification result = verify({values, 2, labels}, pairs, 2);
  EXPECT_DOUBLE_EQ(result.accuracy, 0.75);
  EXPECT_NEAR(result.deviation, 0.25, 1e-9);
}

TEST(Verify, GivesTheTrueAcceptRateWhereThereAreAThousandImpostors) {
  // 1000 impostor pairs at 90 degrees but one at 10; 4 genuine pairs at 0, 5, 20 and 100 degrees.
  // One false accept is allowed, so the threshold is the second highest impostor (90 degrees): 3 of
  // 4 genuine pairs pass.
  std::vector<float> values;
  for (const double angle : {0.0, 90.0, 10.0, 0.0, 5.0, 20.0, 100.0}) add_angle(values, angle);
  const std::vector<int32_t> labels(7, 0);
  std::vector<Pair> pairs(999, Pair{0, 1, false});
  pairs.push_back({0, 2, false});
  for (int64_t other = 3; other < 7; ++other) pairs.push_back({0, other, true});
  const Verification result = verify({values, 2, labels}, pairs, 2);
  ASSERT_TRUE(result.true_accept_rate.has_value());
  EXPECT_DOUBLE_EQ(*result.true_accept_rate, 0.75);
}

TEST(Verify, FallsWithNoiseTowardsChance) {
  double former = 1.01;
  for (const float noise : {0.05f, 0.7f, 3.0f, 100.0f}) {
    const Crowd crowd(20, 10, noise);
    const double accuracy = verify(crowd.rows(), draw_pairs(crowd.labels)).accuracy;
    EXPECT_LT(accuracy, former) << noise;
    former = accuracy;
  }
  EXPECT_NEAR(former, 0.5, 0.06);
}

TEST(Verify, RefusesFewerPairsThanFoldsAndPairsOutside) {
  const std::vector<float> values = {1, 0, 0, 1};
  const std::vector<int32_t> labels = {0, 1};
  const std::vector<Pair> one = {{0, 1, false}};
  EXPECT_THROW(verify({values, 2, labels}, one, 2), InvalidInput);
  const std::vector<Pair> outside = {{0, 1, false}, {0, 2, false}};
  EXPECT_THROW(verify({values, 2, labels}, outside, 2), InvalidInput);
}

TEST(Rank1, FindsTheNearestOfTheGalleryByAngle) {
  std::vector<float> gallery, probes;
  for (const double angle : {0.0, 50.0, 120.0}) add_angle(gallery, angle, 2);
  for (const double angle : {10.0, 40.0, 80.0, 100.0, 24.0}) add_angle(probes, angle, 0.5f);
  const std::vector<int32_t> known = {7, 8, 9};
  const std::vector<int32_t> asked = {7, 8, 9, 9, 8};  // 80 is nearest to 50, 24 to 0: both wrong
  EXPECT_DOUBLE_EQ(rank1({gallery, 2, known}, {probes, 2, asked}), 0.6);
}

TEST(Rank1, UsesTheFirstRowOfEachPersonAsTheGallery) {
  const std::vector<int32_t> labels = {3, 3, 5, 3, 6, 5};
  const GallerySplit split = split_gallery(labels);
  EXPECT_EQ(split.gallery, (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(split.probes, (std::vector<int64_t>{1, 3, 5}));
  std::vector<float> values;
  for (const double angle : {0.0, 10.0, 90.0, 80.0, 200.0, 95.0}) add_angle(values, angle);
  EXPECT_DOUBLE_EQ(rank1({values, 2, labels}, split), 2.0 / 3);
}

TEST(Rank1, WithoutProbesIsZeroAndWithOtherSizesRefused) {
  const std::vector<float> values = {1, 0};
  const std::vector<int32_t> labels = {0};
  EXPECT_DOUBLE_EQ(rank1({values, 2, labels}, split_gallery(labels)), 0.0);
  const std::vector<int32_t> two = {0, 1};
  EXPECT_THROW(rank1({values, 2, labels}, {values, 1, two}), InvalidInput);
}

TEST(Rank1, IsTheSameOnAnyThreads) {
  const Crowd crowd(100, 3, 0.5f);
  const GallerySplit split = split_gallery(crowd.labels);
  const double alone = rank1(crowd.rows(), split);
  EXPECT_GT(alone, 0.1);
  EXPECT_LT(alone, 0.9);
  ThreadPool threads(3);
  EXPECT_EQ(rank1(crowd.rows(), split, threads), alone);
}

constexpr size_t kScoreWidth = nn::Score::kEmbedding + Crowd::kFeatures;

/// Rows of images that are all recognised.
std::vector<float> scores_of(const Crowd& crowd) {
  std::vector<float> rows;
  for (int64_t i = 0; i < crowd.rows().count(); ++i) {
    rows.insert(rows.end(), {0.5f, 1.0f});  // loss, correct
    const auto embedding = crowd.rows().row(i);
    rows.insert(rows.end(), embedding.begin(), embedding.end());
  }
  return rows;
}

TEST(EvaluationSums, ComputesOfEmbeddingsWhatIsWanted) {
  const Crowd crowd(20, 3, 0.3f);
  EvaluationSums sums(kScoreWidth, 20);
  sums.add(scores_of(crowd), crowd.labels);
  ThreadPool threads(2);
  const auto verified = sums.result(60, {.verification = true}, threads);
  EXPECT_TRUE(verified.verification.has_value());
  EXPECT_FALSE(verified.identification.has_value());
  const auto identified = sums.result(60, {.identification = true}, threads);
  EXPECT_FALSE(identified.verification.has_value());
  EXPECT_EQ(identified.identification, rank1(crowd.rows(), split_gallery(crowd.labels)));
}

/// What an evaluation comes to in which one image has this in one place.
EvaluationResult with_one_value(size_t place, float value) {
  const Crowd crowd(20, 3, 0.3f);
  std::vector<float> rows = scores_of(crowd);
  rows[5 * kScoreWidth + place] = value;
  EvaluationSums sums(kScoreWidth, 20);
  sums.add(rows, crowd.labels);
  ThreadPool threads(2);
  return sums.result(60, {.verification = true, .identification = true}, threads);
}

TEST(EvaluationSums, LeavesOutWhatOneImageMakesNoNumber) {
  const auto overflown =
      with_one_value(nn::Score::kEmbedding + 1, std::numeric_limits<float>::infinity());
  EXPECT_EQ(overflown.not_finite, 1);
  EXPECT_FALSE(overflown.verification.has_value());
  EXPECT_FALSE(overflown.identification.has_value());
  EXPECT_EQ(overflown.loss, 0.5);
  EXPECT_EQ(overflown.accuracy, 59.0 / 60) << "it is not recognised";
  const auto lost = with_one_value(nn::Score::kLoss, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(lost.not_finite, 1);
  EXPECT_FALSE(lost.loss.has_value());
  EXPECT_TRUE(lost.verification.has_value());
  EXPECT_EQ(lost.accuracy, 59.0 / 60);
  EXPECT_EQ(with_one_value(nn::Score::kLoss, 0.5f).not_finite, 0);
}

TEST(EvaluationSums, OfPeopleWhoWereNotTrainedOnMeasureOnlyWhatIsOfEmbeddings) {
  const Crowd crowd(20, 3, 0.3f);
  const auto rows = scores_of(crowd);
  ThreadPool threads(2);
  const auto trained_on = [&](int32_t classes) {
    EvaluationSums sums(kScoreWidth, classes);
    sums.add(rows, crowd.labels);
    return sums.result(60, {.verification = true, .identification = true}, threads);
  };
  const EvaluationResult known = trained_on(20);
  EXPECT_EQ(known.accuracy, 1);
  EXPECT_EQ(known.loss, 0.5);
  for (const int32_t classes : {19, 1}) {
    const EvaluationResult strangers = trained_on(classes);
    EXPECT_EQ(strangers.accuracy, std::nullopt);
    EXPECT_EQ(strangers.loss, std::nullopt);
    EXPECT_EQ(strangers.verification, known.verification);
    EXPECT_EQ(strangers.identification, known.identification);
    EXPECT_EQ(strangers.samples, 60);
  }
}

TEST(EvaluationSums, MeasureNothingWhereNoImageCouldBeDecoded) {
  ThreadPool threads(1);
  const auto result = EvaluationSums(kScoreWidth, 20).result(60, {.verification = true}, threads);
  EXPECT_EQ(result.accuracy, std::nullopt);
  EXPECT_EQ(result.broken, 60);
}

}  // namespace
}  // namespace outrigger::training
