#include "nn/cuda/program.h"

#include <algorithm>

#include "common/error.h"

namespace outrigger::nn::cuda {
namespace {

struct CudaWeights final : Weights {
  explicit CudaWeights(DeviceMemory of) : memory(std::move(of)) {}
  DeviceMemory memory;
};

struct CudaTape final : Tape {
  DeviceMemory memory, slots, labels;
  bool labelled = false;
};

TensorSpec spec(ElementType type, int64_t batch, const Shape& shape) {
  TensorSpec all{type, {batch}};
  all.shape.insert(all.shape.end(), shape.begin(), shape.end());
  return all;
}

size_t floats(Range range) { return static_cast<size_t>(range.size) * sizeof(float); }

}  // namespace

CudaProgram::CudaProgram(const Graph& graph, const ProgramOptions& options,
                         std::shared_ptr<Engine> engine)
    : options_(options), engine_(std::move(engine)) {
  const auto lock = engine_->enter();
  Compilation compilation(graph, options_, *engine_);
  const Segment segment = options.segment;
  const auto before = [&](int end) -> const Shape& {
    return graph.layers()[static_cast<size_t>(end - 1)].output;
  };
  input_spec_ = segment.begin == 0
                    ? spec(ElementType::kUint8, options.batch, graph.input())
                    : spec(compilation.map_type(), options.batch, before(segment.begin));
  const bool last = segment.end == graph.size();
  output_spec_ = spec(last ? ElementType::kFloat32 : compilation.map_type(), options.batch,
                      before(segment.end));
  steps_ = make_steps(compilation);
  plan(compilation);
  parameter_bytes_ = compilation.parameter_bytes();
  average_bytes_ = compilation.average_bytes();
  averages_at_ = aligned(parameter_bytes_);
  weight_bytes_ = compilation.weight_bytes();
  find_untrained(graph, compilation);
  const std::string what =
      "what one pass computes with (micro-batches of " + std::to_string(options.batch) + ")";
  scratch_ = DeviceMemory(engine_, plan_.scratch_bytes(), what, options.batch);
  if (!compilation.training()) return;
  gradients_ = DeviceMemory(engine_, parameter_bytes_, "the gradients");
  statistics_ = DeviceMemory(engine_, average_bytes_, "batch norms' statistics");
}

void CudaProgram::plan(Compilation& compilation) {
  for (const auto& step : steps_) {
    step->plan_forward(compilation);
    compilation.next_moment();
  }
  const int last_forward = compilation.moment() - 1;
  if (compilation.training()) {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (!compilation.value((*step)->output()).wants_gradient) continue;
      (*step)->plan_backward(compilation);
      backward_.push_back(step->get());
      compilation.next_moment();
    }
  }
  compilation.buffers().finish(last_forward);
  plan_ = std::move(compilation.buffers());
}

void CudaProgram::find_untrained(const Graph& graph, const Compilation& compilation) {
  const int64_t first = graph.parameter_range(options_.segment).offset;
  for (const Parameter& parameter : graph.parameters()) {
    if (parameter.layer < options_.segment.begin || parameter.layer >= options_.segment.end)
      continue;
    // Layers that do not train at all write nothing.
    if (parameter.trainable || !compilation.trains(parameter.layer)) continue;
    untrained_.push_back({parameter.range.offset - first, parameter.range.size});
  }
}

std::unique_ptr<Weights> CudaProgram::new_weights() const {
  return std::make_unique<CudaWeights>(
      DeviceMemory(engine_, std::max<size_t>(weight_bytes_, 1), "a copy of the weights"));
}

std::unique_ptr<Tape> CudaProgram::new_tape() const {
  auto tape = std::make_unique<CudaTape>();
  const int64_t m = options_.batch;
  tape->memory = DeviceMemory(
      engine_, plan_.tape_bytes(),
      "what a micro-batch of " + std::to_string(m) + " keeps for its backward pass", m);
  tape->slots = DeviceMemory(engine_, static_cast<size_t>(m) * sizeof(uint64_t), "slots");
  tape->labels = DeviceMemory(engine_, static_cast<size_t>(m) * sizeof(int32_t), "labels");
  return tape;
}

void CudaProgram::load(Weights& weights, std::span<const float> parameters,
                       std::span<const float> buffers) const {
  ensure(parameters.size_bytes() == parameter_bytes_ && buffers.size_bytes() == average_bytes_,
         "weights have the sizes of the segment's arenas");
  std::byte* memory = static_cast<CudaWeights&>(weights).memory.data();
  const auto lock = engine_->enter();
  engine_->upload(memory, parameters.data(), parameter_bytes_);
  engine_->upload(memory + averages_at_, buffers.data(), average_bytes_);
  for (const auto& step : steps_) step->load(*engine_, memory);
}

Run CudaProgram::make_run(const Weights& weights, const Tape& tape) const {
  const auto& mine = static_cast<const CudaTape&>(tape);
  Run run;
  run.engine = engine_.get();
  run.plan = &plan_;
  run.tape = mine.memory.data();
  run.scratch = scratch_.data();
  run.weights = static_cast<const CudaWeights&>(weights).memory.data();
  run.statistics = reinterpret_cast<float*>(statistics_.data());
  run.gradients = reinterpret_cast<float*>(gradients_.data());
  run.slots = reinterpret_cast<const uint64_t*>(mine.slots.data());
  if (mine.labelled) run.labels = reinterpret_cast<const int32_t*>(mine.labels.data());
  return run;
}

void CudaProgram::forward(const Weights& weights, Tape& tape, const ForwardInput& in,
                          const ForwardOutput& out) const {
  const bool training = options_.mode == Mode::kTraining;
  ensure(in.count >= 1 && in.count <= options_.batch && (!training || in.count == options_.batch),
         "training takes whole micro-batches, inference 1 to batch samples");
  ensure(!training || in.slots.size() == static_cast<size_t>(in.count),
         "training has one slot a sample");
  ensure(in.labels.empty() || in.labels.size() == static_cast<size_t>(in.count),
         "labels are none or one a sample");
  ensure(in.input.type == input_spec_.type, "the input has the program's type");
  auto& mine = static_cast<CudaTape&>(tape);
  const auto lock = engine_->enter();
  engine_->upload(mine.slots.data(), in.slots.data(), in.slots.size_bytes());
  engine_->upload(mine.labels.data(), in.labels.data(), in.labels.size_bytes());
  mine.labelled = !in.labels.empty();
  // Frozen norms leave the caller's statistics untouched, so what is there goes along.
  if (training) engine_->upload(statistics_.data(), out.statistics.data(), average_bytes_);
  Run run = make_run(weights, tape);
  run.in = &in;
  run.out = &out;
  for (const auto& step : steps_) {
    step->forward(run);
    ++run.moment;
  }
  if (training) engine_->download(out.statistics.data(), statistics_.data(), average_bytes_);
  engine_->synchronize();
}

void CudaProgram::backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                           const BackwardOutput& out) const {
  ensure(options_.mode == Mode::kTraining, "only a training program has a backward pass");
  ensure(out.gradients.size_bytes() == parameter_bytes_,
         "gradients have the size of the segment's arena");
  ensure(output_gradient.type == output_spec_.type, "the gradient has the output's type");
  const auto lock = engine_->enter();
  engine_->clear(gradients_.data(), parameter_bytes_);
  Run run = make_run(weights, tape);
  run.output_gradient = output_gradient.data;
  run.input_gradient = out.input_gradient.data;
  run.moment = static_cast<int>(steps_.size());
  for (const Step* step : backward_) {
    step->backward(run);
    ++run.moment;
  }
  for (const Range range : untrained_) engine_->clear(run.gradients + range.offset, floats(range));
  engine_->download(out.gradients.data(), gradients_.data(), parameter_bytes_);
  engine_->synchronize();
}

}  // namespace outrigger::nn::cuda
