#include "gpu-server/links/delivery.h"

#include <gtest/gtest.h>

namespace outrigger::gpu_server {
namespace {

constexpr double kStemBytes = 2e6;

WorkerMeasures remote() {
  WorkerMeasures measures;
  measures.bytes_per_second = 1e8;
  measures.latency = 0.001;
  return measures;
}

feed::WorkItem pixels() {
  feed::WorkItem item;
  item.step = 7;
  item.times = {.decode = 0.2f};
  item.sent_bytes = 3e6;
  return item;
}

feed::WorkItem stem(uint64_t version) {
  feed::WorkItem item = pixels();
  item.cut = 5;
  item.stem_trains = true;
  item.stem_version = version;
  item.times.forward = 0.1f;
  item.times.backward = 0.3f;
  return item;
}

TEST(Delivery, PixelsRanAheadAndTookTheLink) {
  const WorkerMeasures from = remote();
  const feed::Delivery delivery = delivery_of(pixels(), &from, kStemBytes);
  EXPECT_FALSE(delivery.in_step);
  EXPECT_NEAR(delivery.decode, 0.2, 1e-6);
  EXPECT_NEAR(delivery.link, 0.031, 1e-9);
}

TEST(Delivery, WaitingForBytesIsNoDecoding) {
  feed::WorkItem item = pixels();
  item.times.read = 0.15f;
  const feed::Delivery delivery = delivery_of(item, nullptr, kStemBytes);
  EXPECT_NEAR(delivery.read, 0.15, 1e-6);
  EXPECT_NEAR(delivery.decode, 0.05, 1e-6);
}

TEST(Delivery, ATrainedStemWaitsForTheStepsWeights) {
  const WorkerMeasures from = remote();
  const feed::Delivery delivery = delivery_of(stem(7), &from, kStemBytes);
  EXPECT_TRUE(delivery.in_step);
  EXPECT_NEAR(delivery.stem, 0.1, 1e-6);
  EXPECT_NEAR(delivery.weights, 0.021, 1e-9);
  EXPECT_FALSE(delivery_of(stem(6), &from, kStemBytes).in_step) << "staleness lets it run ahead";
}

TEST(Delivery, AGradientGoesThereAndBack) {
  const WorkerMeasures from = remote();
  feed::WorkItem item = stem(6);
  item.cut_gradient = std::make_shared<Tensor>(ElementType::kFloat32, Shape{1000});
  item.gradients = WireFormat::kInt8;
  item.stem_gradient = std::make_shared<const std::vector<float>>(250'000);
  const feed::Delivery delivery = delivery_of(item, &from, kStemBytes);
  EXPECT_TRUE(delivery.in_step);
  EXPECT_NEAR(delivery.stem, 0.3, 1e-6);
  EXPECT_NEAR(delivery.link, (1e6 + 1000) / 1e8 + 0.002, 1e-9);
  EXPECT_EQ(delivery.weights, 0);
}

TEST(Delivery, TheServersOwnWorkerHasNoLink) {
  EXPECT_EQ(delivery_of(pixels(), nullptr, kStemBytes).link, 0);
}

}  // namespace
}  // namespace outrigger::gpu_server
