#include "nn/cuda/resident.h"

#include <cstring>

#include "common/error.h"
#include "nn/cuda/optimizer_table.h"

namespace outrigger::nn::cuda {
namespace {

const CudaProgram& own(const ResidentPass& pass) {
  return static_cast<const CudaProgram&>(pass.program);
}

}  // namespace

CudaResident::CudaResident(const Graph& graph, const ResidentOptions& options,
                           std::shared_ptr<Engine> engine)
    : graph_(graph),
      options_(options),
      engine_(std::move(engine)),
      buckets_(plan_buckets(graph, graph.whole(), [](int) { return -1; })) {
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
  sums_ = DeviceMemory(engine_, 2 * size_t{kNormColumns} * sizeof(double), "sums");
  state_ = DeviceMemory(engine_, sizeof(SgdState), "the optimizer's step");
  state_host_ = PinnedMemory(engine_, sizeof(SgdState), "the optimizer's step");
  updated_ = engine_->make_mark();
  update_begun_ = engine_->make_instant();
  update_done_ = engine_->make_instant();
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

void CudaResident::fetch_parameters(Range range, std::span<float> to) {
  ensure(static_cast<int64_t>(to.size()) == range.size && range.end() <= count(),
         "parameters fill their range");
  const auto lock = engine_->enter();
  engine_->download(to.data(), floats(parameters_) + range.offset, to.size_bytes());
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

void CudaResident::stage(const ResidentPass& pass, std::span<const ForwardInput> parts) {
  own(pass).stage(pass, parts);
}

void CudaResident::train(const ResidentPass& pass, const ResidentTargets& targets,
                         float loss_scale) {
  ensure(!pass.last || own(pass).segment().begin == 0, "a last pass is of the whole graph");
  summing_ = pass.last && ranks_ != nullptr;
  Pending pending{&own(pass), nullptr, targets};
  if (!free_.empty()) {
    pending.told = std::move(free_.back());
    free_.pop_back();
  } else {
    pending.told = std::make_unique<CudaProgram::Told>();
  }
  CudaProgram::Sums sums{part(gradients_, own(pass).segment()), loss_scale};
  if (summing_) {  // of the whole graph
    sums = rank_sums();
    sums.loss_scale = loss_scale;
  }
  own(pass).train(pass, options_.label_smoothing, sums, *pending.told);
  pending_.push_back(std::move(pending));
}

LossResult CudaResident::collect() {
  ensure(!pending_.empty(), "a pass is collected once");
  Pending oldest = std::move(pending_.front());
  pending_.pop_front();
  const LossResult loss =
      oldest.program->read(*oldest.told, oldest.targets.statistics, oldest.targets.input_gradient);
  CudaProgram::add_times(*oldest.told, times_);
  free_.push_back(std::move(oldest.told));
  return loss;
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
  if (ranks_ != nullptr && ranks.bfloat16)
    rounded_ = DeviceMemory(engine_, count() * sizeof(uint16_t), "gradients between ranks");
  return ranks_ != nullptr;
}

void CudaResident::sum_over_ranks() {
  ensure(ranks_ != nullptr, "ranks have joined before they sum");
  const auto lock = engine_->enter();
  if (!summing_) {  // in the pieces and the order of a rank whose last pass has begun it
    for (const auto& [range, step] : buckets_)
      CudaProgram::begin_sum(engine_->kernels(), rank_sums(), range.offset, range.size);
  }
  summing_ = false;
  ranks_->finish();
  if (rounded_.data() == nullptr) return;
  engine_->kernels().convert(Array{Stored::kBFloat16, rounded_.data()},
                             Array{Stored::kFloat32, gradients_.data()}, count(), false);
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

void CudaResident::queue_update() const {
  const Kernels& kernels = engine_->kernels();
  auto* sums = reinterpret_cast<double*>(sums_.data());
  kernels.norm_of_array(floats(gradients_), count(), sums);
  kernels.prepare_sgd(sums, state());
  kernels.sgd({.ranges = reinterpret_cast<const OptimizerRange*>(ranges_.data()),
               .first = reinterpret_cast<const uint32_t*>(first_.data()),
               .gradients = floats(gradients_),
               .momentum = floats(momentum_),
               .parameters = floats(parameters_),
               .averaged = floats(averaged_)},
              state(), count());
  kernels.norm_of_array(floats(parameters_), count(), sums);
  kernels.finish_sgd(sums, state());
}

ResidentUpdated CudaResident::update(const ResidentUpdate& update) {
  const auto lock = engine_->enter();
  const NamedRange range(*engine_, "optimizer");
  SgdState told;
  told.factors.mean = update.mean;
  told.factors.learning_rate = update.learning_rate;
  told.factors.momentum = options_.optimizer.momentum;
  told.factors.nesterov = options_.optimizer.nesterov;
  told.factors.average_decay = options_.average_decay.value_or(0);
  told.clip_norm = update.clip_norm.value_or(0);
  told.other_squares = update.other_squares;
  std::memcpy(state_host_.data(), &told, sizeof told);
  update_begun_->set();
  engine_->upload_pinned(Queue::kWork, state(), state_host_.data(), sizeof told);
  if (has_updated_ && update_ == nullptr) update_ = engine_->record([this] { queue_update(); });
  if (update_ != nullptr) {
    update_->run();
  } else {
    queue_update();
  }
  has_updated_ = true;
  engine_->download_pinned(state_host_.data(), state(), sizeof told);
  update_done_->set();
  updated_->set(Queue::kWork);
  updated_->wait();
  times_.optimizer += update_done_->seconds_since(*update_begun_);
  std::memcpy(&told, state_host_.data(), sizeof told);
  return {told.gradient_norm, told.zeros == 0};
}

}  // namespace outrigger::nn::cuda
