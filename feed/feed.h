#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/sample.h"
#include "feed/coordinator.h"
#include "feed/plan.h"

namespace outrigger::feed {

/// What a trainer wants of a feed. Calls block until there is an answer; they throw InvalidInput or
/// IoError when the data fails the job, and Cancelled when the run is to stop. One trainer, one
/// thread.
class Feed {
 public:
  virtual ~Feed() = default;

  /// The plan of a step; fixed from this call on at the latest.
  virtual Plan plan_of(uint64_t step) = 0;
  /// The plan of the steps that are not drawn yet.
  virtual void set_plan(const Plan& plan) = 0;
  virtual void publish_stem(uint64_t version, std::shared_ptr<const std::vector<float>> parameters,
                            std::shared_ptr<const std::vector<float>> buffers) = 0;
  virtual ReadyMicroBatch take(uint64_t step, uint32_t index) = 0;
  /// The same without waiting: nothing where it has not come, or its step is not drawn.
  virtual std::optional<ReadyMicroBatch> take_if_there(uint64_t step, uint32_t index) = 0;
  virtual void head_done(uint64_t step, uint32_t index,
                         std::shared_ptr<const Tensor> cut_gradient) = 0;
  virtual std::shared_ptr<const std::vector<float>> take_gradient(uint64_t step,
                                                                  uint32_t index) = 0;
  virtual std::vector<AuditItem> commit(uint64_t step) = 0;
  /// Ids of the samples found broken so far, ascending.
  virtual std::vector<uint32_t> broken_samples() = 0;

  /// Returns the number of batches; take_evaluation then wants each index once, in order.
  virtual uint32_t begin_evaluation(const data::Dataset& dataset, uint32_t batch) = 0;
  virtual ReadyMicroBatch take_evaluation(uint32_t index) = 0;
  virtual void end_evaluation() = 0;
};

}  // namespace outrigger::feed
