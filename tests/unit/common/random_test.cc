#include "common/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace outrigger {
namespace {

using Words = std::array<uint32_t, 4>;

// Random123 1.09, tests/kat_vectors, rows "philox4x32 10".
TEST(Random, PhiloxAgreesWithThePublishedVectors) {
  EXPECT_EQ(philox({0, 0}, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsMadeAlikeGiveTheSameNumbers) {
  RandomStream a(7, RandomUse::kDropout, 1234567890123, 4);
  RandomStream b(7, RandomUse::kDropout, 1234567890123, 4);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next_u32(), b.next_u32());
}

TEST(Random, AChangeOfAnyPartOfTheKeyGivesOtherNumbers) {
  const auto first = [](uint64_t seed, RandomUse use, uint64_t a, uint32_t b) {
    return RandomStream(seed, use, a, b).next_u64();
  };
  const uint64_t base = first(1, RandomUse::kDropout, 1, 1);
  EXPECT_NE(first(2, RandomUse::kDropout, 1, 1), base);
  EXPECT_NE(first(1, RandomUse::kAugmentation, 1, 1), base);
  EXPECT_NE(first(1, RandomUse::kDropout, 2, 1), base);
  EXPECT_NE(first(1, RandomUse::kDropout, uint64_t{1} << 32 | 1, 1), base);
  EXPECT_NE(first(1, RandomUse::kDropout, 1, 2), base);
}

TEST(Random, BoundedNumbersStayBelowTheBoundAndAreEven) {
  RandomStream stream(1, RandomUse::kEpochOrder, 0);
  constexpr uint32_t kBound = 7;
  constexpr int kDraws = 70'000;
  std::vector<int> seen(kBound);
  for (int i = 0; i < kDraws; ++i) {
    const uint32_t value = stream.below(kBound);
    ASSERT_LT(value, kBound);
    ++seen[value];
  }
  // A count is binomial: five standard deviations around kDraws / kBound.
  const double expected = kDraws / double{kBound};
  for (const int count : seen) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
}

TEST(Random, LargeBoundsAreHeldToo) {
  RandomStream stream(1, RandomUse::kEpochOrder, 0);
  constexpr uint64_t kBound = (uint64_t{1} << 40) + 3;
  bool beyond_32_bits = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = stream.below64(kBound);
    ASSERT_LT(value, kBound);
    beyond_32_bits |= value > 0xffffffff;
  }
  EXPECT_TRUE(beyond_32_bits);
}

TEST(Random, UniformAndNormalNumbersHaveTheirMoments) {
  RandomStream stream(3, RandomUse::kInitialWeights, 0);
  constexpr int kDraws = 100'000;
  double uniform = 0;
  double normal = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const float u = stream.uniform();
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    uniform += u;
    const double z = stream.normal();
    normal += z;
    squares += z * z;
  }
  // Five standard errors of each mean.
  const double root = std::sqrt(kDraws);
  EXPECT_NEAR(uniform / kDraws, 0.5, 5 * std::sqrt(1.0 / 12) / root);
  EXPECT_NEAR(normal / kDraws, 0.0, 5 / root);
  EXPECT_NEAR(squares / kDraws, 1.0, 5 * std::sqrt(2.0) / root);
}

}  // namespace
}  // namespace outrigger
