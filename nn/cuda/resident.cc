#include "nn/cuda/resident.h"

#include <cmath>

#include "common/error.h"
#include "nn/cuda/optimizer_table.h"
#include "nn/cuda/program.h"

namespace outrigger::nn::cuda {
namespace {

const CudaProgram& own(const ResidentPass& pass) {
  return static_cast<const CudaProgram&>(pass.program);
}

}  // namespace

CudaResident::CudaResident(const Graph& graph, const ResidentOptions& options,
                           std::shared_ptr<Engine> engine)
    : graph_(graph), options_(options), engine_(std::move(engine)) {
  const OptimizerTable table = plan_optimizer(graph, options.optimizer);
  const size_t bytes = count() * sizeof(float);
  parameters_ = DeviceMemory(engine_, bytes, "the weights");
  momentum_ = DeviceMemory(engine_, bytes, "the optimizer's momentum");
  gradients_ = DeviceMemory(engine_, bytes, "the sums of gradients");
  if (options.average_decay) averaged_ = DeviceMemory(engine_, bytes, "averaged weights");
  const std::span ranges(table.ranges);
  const std::span first(table.first);
  ranges_ = DeviceMemory(engine_, ranges.size_bytes(), "the optimizer's table");
  first_ = DeviceMemory(engine_, first.size_bytes(), "the optimizer's table");
  sums_on_host_.resize(2 * size_t{kNormColumns});
  sums_ = DeviceMemory(engine_, sums_on_host_.size() * sizeof(double), "sums");
  const auto lock = engine_->enter();
  engine_->upload(ranges_.data(), ranges.data(), ranges.size_bytes());
  engine_->upload(first_.data(), first.data(), first.size_bytes());
  engine_->synchronize();  // the table goes
}

void CudaResident::put(const ResidentArrays& host) {
  ensure(host.parameters.size() == count() && host.momentum.size() == count() &&
             host.averaged.size_bytes() == averaged_.bytes(),
         "a run's arrays have the model's size");
  const auto lock = engine_->enter();
  engine_->upload(parameters_.data(), host.parameters.data(), host.parameters.size_bytes());
  engine_->upload(momentum_.data(), host.momentum.data(), host.momentum.size_bytes());
  engine_->upload(averaged_.data(), host.averaged.data(), host.averaged.size_bytes());
  engine_->synchronize();
}

void CudaResident::fetch(const ResidentArrays& host) {
  const auto lock = engine_->enter();
  const auto fetch = [&](std::span<float> to, const DeviceMemory& from) {
    if (to.empty()) return;
    ensure(to.size_bytes() == from.bytes(), "a run's arrays have the model's size");
    engine_->download(to.data(), from.data(), from.bytes());
  };
  fetch(host.parameters, parameters_);
  fetch(host.momentum, momentum_);
  fetch(host.averaged, averaged_);
}

float* CudaResident::part(const DeviceMemory& of, Segment segment) const {
  return floats(of) + graph_.parameter_range(segment).offset;
}

void CudaResident::load(const Program& program, Weights& weights, std::span<const float> buffers) {
  const auto& mine = static_cast<const CudaProgram&>(program);
  mine.load_from_device(weights, part(parameters_, mine.segment()), buffers);
}

void CudaResident::clear_gradients() {
  const auto lock = engine_->enter();
  engine_->clear(gradients_.data(), gradients_.bytes());
}

LossResult CudaResident::train(const ResidentPass& pass, const ForwardInput& in,
                               std::span<float> statistics, const TensorView& input_gradient,
                               float loss_scale) {
  ensure(!pass.last || own(pass).segment().begin == 0, "a last pass is of the whole graph");
  summing_ = pass.last && ranks_ != nullptr;
  return own(pass).train(
      pass, in, statistics, input_gradient, options_.label_smoothing,
      {part(gradients_, own(pass).segment()), loss_scale, summing_ ? ranks_.get() : nullptr});
}

void CudaResident::backward(const ResidentPass& pass, const ConstTensorView& output_gradient,
                            float loss_scale) {
  own(pass).backward_into(pass, output_gradient,
                          {part(gradients_, own(pass).segment()), loss_scale});
}

void CudaResident::add_gradients(Range range, std::span<const float> gradients) {
  ensure(static_cast<int64_t>(gradients.size()) == range.size && range.end() <= count(),
         "gradients fill their range");
  if (incoming_.bytes() < gradients.size_bytes())
    incoming_ = DeviceMemory(engine_, gradients.size_bytes(), "gradients of workers");
  const auto lock = engine_->enter();
  engine_->upload(incoming_.data(), gradients.data(), gradients.size_bytes());
  engine_->kernels().add_scaled(floats(incoming_), 1, floats(gradients_) + range.offset,
                                static_cast<uint32_t>(range.size));
  engine_->synchronize();  // the caller's memory goes
}

bool CudaResident::join(const RankGroup& ranks) {
  const auto lock = engine_->enter();
  ranks_ = engine_->join(ranks);
  return ranks_ != nullptr;
}

void CudaResident::sum_over_ranks() {
  ensure(ranks_ != nullptr, "ranks have joined before they sum");
  const auto lock = engine_->enter();
  if (!summing_) ranks_->begin_sum(floats(gradients_), count());
  summing_ = false;
  ranks_->finish();
}

void CudaResident::fetch_gradients(std::span<float> gradients) {
  ensure(gradients.size() == count(), "gradients have the model's size");
  const auto lock = engine_->enter();
  engine_->download(gradients.data(), gradients_.data(), gradients_.bytes());
}

void CudaResident::put_gradients(std::span<const float> gradients) {
  ensure(gradients.size() == count(), "gradients have the model's size");
  const auto lock = engine_->enter();
  engine_->upload(gradients_.data(), gradients.data(), gradients_.bytes());
  engine_->synchronize();
}

CudaResident::Sums CudaResident::sum_up(const DeviceMemory& array) {
  engine_->kernels().norm_of_array(floats(array), count(), reinterpret_cast<double*>(sums_.data()));
  engine_->download(sums_on_host_.data(), sums_.data(), sums_.bytes());
  Sums sums;
  for (size_t i = 0; i < kNormColumns; ++i) {
    sums.squares += sums_on_host_[i];
    sums.zeros += sums_on_host_[kNormColumns + i];
  }
  return sums;
}

ResidentUpdated CudaResident::update(const ResidentUpdate& update) {
  const auto lock = engine_->enter();
  ResidentUpdated result;
  result.gradient_norm = std::sqrt(sum_up(gradients_).squares) * double{update.mean};
  if (!std::isfinite(result.gradient_norm)) return result;
  SgdFactors factors;
  factors.mean = update.mean;
  if (update.clip_norm && result.gradient_norm > *update.clip_norm)
    factors.shrink = static_cast<float>(*update.clip_norm / result.gradient_norm);
  factors.learning_rate = update.learning_rate;
  factors.momentum = options_.optimizer.momentum;
  factors.nesterov = options_.optimizer.nesterov;
  factors.average_decay = options_.average_decay.value_or(0);
  const SgdArrays arrays{.ranges = reinterpret_cast<const OptimizerRange*>(ranges_.data()),
                         .first = reinterpret_cast<const uint32_t*>(first_.data()),
                         .gradients = floats(gradients_),
                         .momentum = floats(momentum_),
                         .parameters = floats(parameters_),
                         .averaged = floats(averaged_)};
  engine_->kernels().sgd(arrays, factors, count());
  result.weights_finite = sum_up(parameters_).zeros == 0;
  return result;
}

}  // namespace outrigger::nn::cuda
