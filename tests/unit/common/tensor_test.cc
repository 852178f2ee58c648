#include "common/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/fakes/memory_blocks.h"

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

TEST(Tensor, LiesInMemoryOfASourceAsFarAsThatHasAny) {
  const auto source = fakes::MemoryBlocks::create(1);
  Tensor first(ElementType::kFloat32, {3, 20}, source.get());
  const Tensor second(ElementType::kFloat32, {3, 20}, source.get());
  EXPECT_TRUE(source->hold(first.view().data));
  EXPECT_FALSE(second.empty());
  EXPECT_FALSE(source->hold(second.view().data));
  Tensor moved = std::move(first);
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): that is what is asked
  EXPECT_TRUE(source->hold(moved.view().data));
  moved = Tensor(ElementType::kUint8, {1});
  EXPECT_EQ(source->used(), 0u) << "it went back when nobody had it";
}

TEST(Tensor, InPlaceKeepsWhatItsElementsLieIn) {
  const auto owner = std::make_shared<Tensor>(ElementType::kInt32, Shape{4});
  owner->as<int32_t>()[3] = 7;
  auto tensor = Tensor::in_place({ElementType::kInt32, {2, 2}, owner->view().data}, owner);
  EXPECT_EQ(tensor->view().data, owner->view().data);
  EXPECT_EQ(tensor->shape(), (Shape{2, 2}));
  EXPECT_EQ(tensor->as<int32_t>()[3], 7);
  EXPECT_EQ(owner.use_count(), 2);
  tensor.reset();
  EXPECT_EQ(owner.use_count(), 1);
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
