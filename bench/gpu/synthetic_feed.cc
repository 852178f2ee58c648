#include "bench/gpu/synthetic_feed.h"

#include "common/error.h"
#include "common/random.h"

namespace outrigger::bench {

SyntheticFeed::SyntheticFeed(const SyntheticOptions& options) {
  RandomStream random(1, RandomUse::kSyntheticData, 0);
  Shape shape{options.micro_batch};
  shape.insert(shape.end(), options.sample.begin(), options.sample.end());
  for (uint32_t index = 0; index < options.micro_batches; ++index) {
    feed::ReadyMicroBatch batch;
    batch.index = index;
    auto pixels = std::make_shared<Tensor>(ElementType::kUint8, shape);
    for (uint8_t& pixel : pixels->as<uint8_t>()) pixel = static_cast<uint8_t>(random.next_u32());
    batch.tensor = std::move(pixels);
    for (uint32_t i = 0; i < options.micro_batch; ++i) {
      batch.slots.push_back(uint64_t{index} * options.micro_batch + i);
      batch.labels.push_back(static_cast<int32_t>(random.below(options.classes)));
    }
    step_.push_back(std::move(batch));
  }
}

feed::Plan SyntheticFeed::plan_of(uint64_t) {
  feed::Plan plan;
  plan.number = 1;
  return plan;
}
void SyntheticFeed::set_plan(const feed::Plan&) { impossible("the plan is one"); }
void SyntheticFeed::publish_stem(uint64_t, std::shared_ptr<const std::vector<float>>,
                                 std::shared_ptr<const std::vector<float>>) {}
feed::ReadyMicroBatch SyntheticFeed::take(uint64_t step, uint32_t index) {
  feed::ReadyMicroBatch batch = step_.at(index);
  batch.step = step;
  return batch;
}
std::optional<feed::ReadyMicroBatch> SyntheticFeed::take_if_there(uint64_t step, uint32_t index) {
  return take(step, index);
}
void SyntheticFeed::head_done(uint64_t, uint32_t, std::shared_ptr<const Tensor>) {
  impossible("nothing is cut");
}
std::shared_ptr<const std::vector<float>> SyntheticFeed::take_gradient(uint64_t, uint32_t) {
  impossible("nothing is cut");
}
std::vector<feed::AuditItem> SyntheticFeed::commit(uint64_t) { return {}; }
std::vector<uint32_t> SyntheticFeed::broken_samples() { return {}; }
uint32_t SyntheticFeed::begin_evaluation(const data::Dataset&, uint32_t) {
  impossible("nothing is evaluated");
}
feed::ReadyMicroBatch SyntheticFeed::take_evaluation(uint32_t) {
  impossible("nothing is evaluated");
}
void SyntheticFeed::end_evaluation() { impossible("nothing is evaluated"); }

}  // namespace outrigger::bench
