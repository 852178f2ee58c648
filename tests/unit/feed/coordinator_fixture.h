#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "feed/coordinator.h"
#include "tests/fakes/fake_clock.h"

namespace outrigger::feed {

inline constexpr int32_t kCut = 3;
inline constexpr size_t kStemFloats = 6;

inline data::Dataset eight_images() {
  data::Dataset dataset;
  dataset.set_classes({"a", "b"});
  dataset.begin_container("", false);
  for (int i = 0; i < 8; ++i) dataset.add_file("image" + std::to_string(i), i % 2);
  dataset.finish();
  return dataset;
}

/// Steps of two micro-batches of two samples; the second is cut where the plan says so.
class CoordinatorTest : public testing::Test {
 protected:
  static CoordinatorOptions options() {
    return {.incarnation = 1,
            .total_steps = 10,
            .micro_batches = 2,
            .micro_batch = 2,
            .max_bad_fraction = 0.125,
            .max_read_failures = 2,
            .unreadable_after = std::chrono::seconds(10)};
  }
  static Plan pixels() { return {.number = 1}; }
  static Plan one_stem_away() {
    return {.number = 1,
            .cut = kCut,
            .stems_away = 1,
            .stem_trains = true,
            .stem_parameters = kStemFloats};
  }
  Coordinator make(const Plan& plan, const CoordinatorOptions& given = options()) {
    return {given, SampleOrder({.seed = 1, .samples = 8}), dataset_, plan};
  }

  WorkerId join(Coordinator& feed, uint32_t leases, bool runs_stems = true) {
    const WorkerId id = feed.add_worker({"worker", false, runs_stems}, clock_.now());
    feed.receive(id, Pull{leases}, clock_.now());
    return id;
  }
  template <typename Message>
  static std::vector<Message> sent(Coordinator& feed, WorkerId to) {
    std::vector<Message> found;
    for (const auto& out : feed.take_outbox()) {
      const auto* message = std::get_if<Message>(&out.message);
      if (message != nullptr && out.to == to) found.push_back(*message);
    }
    return found;
  }
  void deliver(Coordinator& feed, WorkerId from, const Lease& lease, uint64_t hash = 1) {
    const auto rows = static_cast<int64_t>(lease.samples.size());
    feed.receive(from,
                 MicroBatch{.key = lease.key,
                            .tensor = std::make_shared<Tensor>(ElementType::kUint8, Shape{rows, 4}),
                            .pixel_hash = hash},
                 clock_.now());
  }

  const data::Dataset dataset_ = eight_images();
  fakes::FakeClock clock_;
  const std::shared_ptr<const Tensor> gradient_ =
      std::make_shared<Tensor>(ElementType::kFloat32, Shape{2, 4});
};

}  // namespace outrigger::feed
