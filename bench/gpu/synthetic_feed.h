#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "feed/feed.h"

namespace outrigger::bench {

struct SyntheticOptions {
  Shape sample;  // {H, W, C}
  uint32_t micro_batch = 1;
  uint32_t micro_batches = 1;
  uint32_t classes = 2;
};

/// A feed whose micro-batches are always there: a step's worth of random pixels and labels, the
/// same in each step. What a trainer reaches on it is what no input can slow down.
class SyntheticFeed final : public feed::Feed {
 public:
  explicit SyntheticFeed(const SyntheticOptions& options);

  feed::Plan plan_of(uint64_t step) override;
  void set_plan(const feed::Plan& plan) override;
  void publish_stem(uint64_t version, std::shared_ptr<const std::vector<float>> parameters,
                    std::shared_ptr<const std::vector<float>> buffers) override;
  feed::ReadyMicroBatch take(uint64_t step, uint32_t index) override;
  std::optional<feed::ReadyMicroBatch> take_if_there(uint64_t step, uint32_t index) override;
  void head_done(uint64_t step, uint32_t index,
                 std::shared_ptr<const Tensor> cut_gradient) override;
  std::shared_ptr<const std::vector<float>> take_gradient(uint64_t step, uint32_t index) override;
  std::vector<feed::AuditItem> commit(uint64_t step) override;
  std::vector<uint32_t> broken_samples() override;
  uint32_t begin_evaluation(const data::Dataset& dataset, uint32_t batch) override;
  feed::ReadyMicroBatch take_evaluation(uint32_t index) override;
  void end_evaluation() override;

 private:
  std::vector<feed::ReadyMicroBatch> step_;
};

}  // namespace outrigger::bench
