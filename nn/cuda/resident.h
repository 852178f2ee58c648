#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "nn/cuda/bucket_plan.h"
#include "nn/cuda/engine.h"
#include "nn/cuda/program.h"
#include "nn/graph.h"
#include "nn/resident.h"

namespace outrigger::nn::cuda {

/// A run's arrays in an engine's memory; passes are of CudaPrograms of that engine.
class CudaResident final : public Resident {
 public:
  CudaResident(const Graph& graph, const ResidentOptions& options, std::shared_ptr<Engine> engine);

  void put(const ResidentArrays& host) override;
  void fetch(const ResidentArrays& host) override;
  void fetch_parameters(Range range, std::span<float> to) override;
  void load(const Program& program, Weights& weights, std::span<const float> buffers) override;
  void clear_gradients() override;
  void stage(const ResidentPass& pass, std::span<const ForwardInput> parts) override;
  void train(const ResidentPass& pass, const ResidentTargets& targets, float loss_scale) override;
  LossResult collect() override;
  void backward(const ResidentPass& pass, const ConstTensorView& output_gradient,
                float loss_scale) override;
  void add_gradients(Range range, std::span<const float> gradients) override;
  bool join(const RankGroup& ranks) override;
  void sum_over_ranks() override;
  void fetch_gradients(std::span<float> gradients) override;
  void put_gradients(std::span<const float> gradients) override;
  ResidentUpdated update(const ResidentUpdate& update) override;
  ResidentTimes take_times() override { return std::exchange(times_, {}); }

 private:
  static float* floats(const DeviceMemory& memory) {
    return reinterpret_cast<float*>(memory.data());
  }
  struct Pending {
    const CudaProgram* program = nullptr;
    std::unique_ptr<CudaProgram::Told> told;
    ResidentTargets targets;
  };
  SgdState* state() const { return reinterpret_cast<SgdState*>(state_.data()); }
  void queue_update() const;
  /// Of all gradients, over the ranks.
  CudaProgram::Sums rank_sums() const {
    return {floats(gradients_), 1, ranks_.get(), rounded_.data()};
  }
  uint32_t count() const { return static_cast<uint32_t>(graph_.parameter_count()); }
  /// Of the segment, in arena `of`.
  float* part(const DeviceMemory& of, Segment segment) const;

  const Graph& graph_;
  const ResidentOptions options_;
  const std::shared_ptr<Engine> engine_;
  DeviceMemory parameters_, momentum_, averaged_, gradients_;
  DeviceMemory ranges_, first_;  // the optimizer's table
  DeviceMemory sums_;
  DeviceMemory incoming_;    // of add_gradients, made when it is first needed
  DeviceMemory state_;       // of the optimizer's step
  PinnedMemory state_host_;  // likewise: what is told, then what came of it
  std::unique_ptr<Mark> updated_;
  std::unique_ptr<Instant> update_begun_, update_done_;
  ResidentTimes times_;
  std::unique_ptr<Recording> update_;  // from the second step on
  bool has_updated_ = false;
  std::deque<Pending> pending_;
  std::vector<std::unique_ptr<CudaProgram::Told>> free_;  // of passes that were collected
  std::unique_ptr<Collective> ranks_;                     // null: alone, or the host sums
  DeviceMemory rounded_;                                  // gradients as bfloat16, for the ranks
  bool summing_ = false;                                  // the step's last pass has begun it
  const std::vector<GradientBucket> buckets_;             // of the whole graph
};

}  // namespace outrigger::nn::cuda
