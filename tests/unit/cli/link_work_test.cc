#include "cli/link_work.h"

#include <gtest/gtest.h>

namespace outrigger::cli {
namespace {

TEST(LinkWork, IsWhatFramesBytesAndPackingTakeOfACore) {
  LinkMeter meter(ElementType::kFloat32);
  const training::LinkWork work = meter.work({WireFormat::kInt8, WireFormat::kInt8});
  EXPECT_GT(work.frame, 1e-7);
  EXPECT_LT(work.frame, 0.1);
  EXPECT_GT(work.byte, 1e-12);
  EXPECT_LT(work.byte, 1e-6);
  EXPECT_GT(work.activations, 0);
  EXPECT_GT(work.gradients, 0);
  const training::LinkWork unpacked = meter.work({});
  EXPECT_EQ(unpacked.frame, work.frame);
  EXPECT_LT(unpacked.activations + unpacked.gradients, work.activations + work.gradients)
      << "float32 travels as it is";
}

TEST(LinkWork, OfWiresThatAreNarrowedGoesByEachOfThem) {
  const Wires mixed{WireFormat::kInt8, WireFormat::kFloat32};
  EXPECT_EQ(narrowed(mixed, WireFormat::kBFloat16),
            (Wires{WireFormat::kInt8, WireFormat::kBFloat16}));
  EXPECT_EQ(narrowed(mixed, WireFormat::kInt8), (Wires{WireFormat::kInt8, WireFormat::kInt8}));
}

}  // namespace
}  // namespace outrigger::cli
