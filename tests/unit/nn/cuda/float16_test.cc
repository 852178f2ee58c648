#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nn/cuda/kernels/scalar.h"

namespace outrigger::nn::cuda {
namespace {

uint16_t stored(float value) {
  Float16 half{};
  store(&half, value);
  return half.bits;
}

TEST(Float16, HoldsEachOfItsValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(Float16{static_cast<uint16_t>(bits)});
    if (std::isnan(value)) {
      ASSERT_GT(bits & 0x7FFFu, 0x7C00u);
      continue;
    }
    ASSERT_EQ(stored(value), bits) << value;
  }
}

// Python's struct.pack("e", …) gives these.
TEST(Float16, IsIeeeBinary16) {
  EXPECT_EQ(stored(1.0f), 0x3C00);
  EXPECT_EQ(stored(-2.5f), 0xC100);
  EXPECT_EQ(stored(65504.0f), 0x7BFF);
  EXPECT_EQ(stored(6.103515625e-05f), 0x0400) << "the least normal one";
  EXPECT_EQ(stored(5.9604644775390625e-08f), 0x0001) << "the least of all";
  EXPECT_EQ(stored(0.1f), 0x2E66);
}

// Between two neighbours: the nearer, and of equally near ones the even.
TEST(Float16, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits + 1 < 0x7C00; ++bits) {
    const double low = to_float(Float16{static_cast<uint16_t>(bits)});
    const double high = to_float(Float16{static_cast<uint16_t>(bits + 1)});
    const auto middle = static_cast<float>((low + high) / 2);
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(stored(middle), even) << middle;
    ASSERT_EQ(stored(std::nextafter(middle, 0.0f)), bits) << middle;
    ASSERT_EQ(stored(std::nextafter(middle, 1e9f)), bits + 1) << middle;
    ASSERT_EQ(stored(-middle), even | 0x8000u) << middle;
  }
}

TEST(Float16, KeepsWhatIsNoNumberAndWhatIsTooLarge) {
  EXPECT_EQ(stored(65519.996f), 0x7BFF);
  EXPECT_EQ(stored(65520.0f), 0x7C00);
  EXPECT_EQ(stored(-1e30f), 0xFC00);
  EXPECT_EQ(stored(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_TRUE(std::isnan(to_float(Float16{stored(std::numeric_limits<float>::quiet_NaN())})));
  EXPECT_TRUE(std::isinf(to_float(Float16{0x7C00})));
}

}  // namespace
}  // namespace outrigger::nn::cuda
