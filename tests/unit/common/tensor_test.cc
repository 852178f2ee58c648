#include "common/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace outrigger {
namespace {

TEST(Tensor, OwnsAlignedMemoryOfItsShape) {
  Tensor tensor(ElementType::kBFloat16, {2, 3, 5});
  EXPECT_EQ(tensor.bytes(), 60u);
  EXPECT_EQ(tensor.as<uint16_t>().size(), 30u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.view().data) % 64, 0u);
}

TEST(Tensor, WithoutElementsIsNotEmptyButHasNoBytes) {
  const Tensor tensor(ElementType::kFloat32, {0, 10});
  EXPECT_FALSE(tensor.empty());
  EXPECT_EQ(tensor.bytes(), 0u);
  EXPECT_TRUE(Tensor().empty());
  EXPECT_EQ(Tensor().bytes(), 0u);
}

TEST(Tensor, AScalarHasOneElement) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(to_string(Shape{}), "{}");
  EXPECT_EQ(to_string(Shape{8, 3, 112, 112}), "{8, 3, 112, 112}");
}

TEST(BFloat16, KeepsWhatItCanHold) {
  for (const float value :
       {0.0f, -0.0f, 1.0f, -2.5f, 0x1.0p-126f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(from_bfloat16(to_bfloat16(value))),
              std::bit_cast<uint32_t>(value));
  }
}

// bfloat16 has 8 significant bits, so the next number after 1 is 1 + 2^-7.
TEST(BFloat16, RoundsHalfwayCasesToEven) {
  EXPECT_EQ(from_bfloat16(to_bfloat16(1 + 0x1.0p-8f)), 1.0f);
  EXPECT_EQ(from_bfloat16(to_bfloat16(1 + 3 * 0x1.0p-8f)), 1 + 0x1.0p-6f);
  EXPECT_EQ(from_bfloat16(to_bfloat16(1 + 0x1.02p-8f)), 1 + 0x1.0p-7f);
}

TEST(BFloat16, TooLargeNumbersBecomeInfinity) {
  EXPECT_TRUE(std::isinf(from_bfloat16(to_bfloat16(std::numeric_limits<float>::max()))));
}

TEST(BFloat16, EveryNanStaysNan) {
  for (const uint32_t bits : {0x7F800001u, 0x7FFFFFFFu, 0xFF800001u, 0x7FC00000u}) {
    EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(std::bit_cast<float>(bits))))) << bits;
  }
}

}  // namespace
}  // namespace outrigger
