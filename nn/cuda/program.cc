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

ElementType outside(Stored type) {
  ensure(type != Stored::kFloat16, "float16 does not cross a cut");
  return type == Stored::kBFloat16 ? ElementType::kBFloat16 : ElementType::kFloat32;
}

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
  input_spec_ = segment.begin == 0 ? spec(ElementType::kUint8, options.batch, graph.input())
                                   : spec(outside(compilation.crossing_type()), options.batch,
                                          before(segment.begin));
  const bool last = segment.end == graph.size();
  output_spec_ = spec(last ? ElementType::kFloat32 : outside(compilation.crossing_type()),
                      options.batch, before(segment.end));
  steps_ = make_steps(compilation);
  plan(compilation);
  parameter_bytes_ = compilation.parameter_bytes();
  average_bytes_ = compilation.average_bytes();
  averages_at_ = aligned(parameter_bytes_);
  weight_bytes_ = compilation.weight_bytes();
  find_untrained(graph, compilation);
  plan_gradient_buckets(graph, compilation);
  const std::string what =
      "what one pass computes with (micro-batches of " + std::to_string(options.batch) + ")";
  scratch_ = DeviceMemory(engine_, plan_.scratch_bytes(), what, options.batch);
  if (!compilation.training()) return;
  gradients_ = DeviceMemory(engine_, parameter_bytes_, "the gradients");
  statistics_ = DeviceMemory(engine_, average_bytes_, "batch norms' statistics");
  if (last)
    losses_ = DeviceMemory(engine_, 2 * static_cast<size_t>(options.batch) * sizeof(float),
                           "the losses", options.batch);
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

// A parameter lies in one layer, so a bucket has all of it or nothing.
void CudaProgram::plan_gradient_buckets(const Graph& graph, const Compilation& compilation) {
  const int first_backward = static_cast<int>(steps_.size());
  const int64_t first = graph.parameter_range(options_.segment).offset;
  std::vector<GradientPiece> pieces;
  for (int layer = options_.segment.begin; layer < options_.segment.end; ++layer) {
    const Range range = graph.parameter_range({layer, layer + 1});
    if (range.size == 0) continue;
    const int moment = compilation.gradient_moment(layer);
    pieces.push_back(
        {{range.offset - first, range.size}, moment < 0 ? -1 : moment - first_backward});
  }
  buckets_ = plan_buckets(pieces, kBucketFloats);
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

void CudaProgram::load_from_device(Weights& weights, const float* parameters,
                                   std::span<const float> buffers) const {
  ensure(buffers.size_bytes() == average_bytes_, "averages have the size of the segment's arena");
  std::byte* memory = static_cast<CudaWeights&>(weights).memory.data();
  const auto lock = engine_->enter();
  engine_->copy(memory, parameters, parameter_bytes_);
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

void CudaProgram::check_input(const ForwardInput& in) const {
  const bool training = options_.mode == Mode::kTraining;
  ensure(in.count >= 1 && in.count <= options_.batch && (!training || in.count == options_.batch),
         "training takes whole micro-batches, inference 1 to batch samples");
  ensure(!training || in.slots.size() == static_cast<size_t>(in.count),
         "training has one slot a sample");
  ensure(in.labels.empty() || in.labels.size() == static_cast<size_t>(in.count),
         "labels are none or one a sample");
  ensure(in.input.type == input_spec_.type, "the input has the program's type");
}

void CudaProgram::run_forward(Run& run, Tape& tape, const ForwardInput& in,
                              std::span<float> statistics) const {
  auto& mine = static_cast<CudaTape&>(tape);
  engine_->upload(mine.slots.data(), in.slots.data(), in.slots.size_bytes());
  engine_->upload(mine.labels.data(), in.labels.data(), in.labels.size_bytes());
  mine.labelled = !in.labels.empty();
  run.labels = mine.labelled ? reinterpret_cast<const int32_t*>(mine.labels.data()) : nullptr;
  // Frozen norms leave the caller's statistics untouched, so what is there goes along.
  if (options_.mode == Mode::kTraining)
    engine_->upload(statistics_.data(), statistics.data(), average_bytes_);
  run.in = &in;
  for (const auto& step : steps_) {
    step->forward(run);
    ++run.moment;
  }
}

void CudaProgram::run_backward(Run& run, const Sums* sums) const {
  engine_->clear(gradients_.data(), parameter_bytes_);
  run.moment = static_cast<int>(steps_.size());
  auto bucket = buckets_.begin();
  for (size_t i = 0; i < backward_.size(); ++i) {
    backward_[i]->backward(run);
    ++run.moment;
    for (; bucket != buckets_.end() && bucket->step <= static_cast<int>(i); ++bucket)
      finish_bucket(bucket->range, sums);
  }
}

void CudaProgram::finish_bucket(Range bucket, const Sums* sums) const {
  auto* gradients = reinterpret_cast<float*>(gradients_.data());
  for (const Range range : untrained_) {
    if (range.offset >= bucket.offset && range.offset < bucket.end())
      engine_->clear(gradients + range.offset, floats(range));
  }
  if (sums == nullptr) return;
  float* to = sums->gradients + bucket.offset;
  engine_->kernels().add_scaled(gradients + bucket.offset, 1 / sums->loss_scale, to,
                                static_cast<uint32_t>(bucket.size));
  if (sums->ranks != nullptr) sums->ranks->begin_sum(to, static_cast<size_t>(bucket.size));
}

void CudaProgram::forward(const Weights& weights, Tape& tape, const ForwardInput& in,
                          const ForwardOutput& out) const {
  check_input(in);
  const auto lock = engine_->enter();
  Run run = make_run(weights, tape);
  run.out = &out;
  run_forward(run, tape, in, out.statistics);
  if (options_.mode == Mode::kTraining)
    engine_->download(out.statistics.data(), statistics_.data(), average_bytes_);
  engine_->synchronize();
}

void CudaProgram::backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                           const BackwardOutput& out) const {
  ensure(options_.mode == Mode::kTraining, "only a training program has a backward pass");
  ensure(out.gradients.size_bytes() == parameter_bytes_,
         "gradients have the size of the segment's arena");
  ensure(output_gradient.type == output_spec_.type, "the gradient has the output's type");
  const auto lock = engine_->enter();
  Run run = make_run(weights, tape);
  run.output_gradient = output_gradient.data;
  run.input_gradient = out.input_gradient.data;
  run_backward(run, nullptr);
  engine_->download(out.gradients.data(), gradients_.data(), parameter_bytes_);
  engine_->synchronize();
}

LossResult CudaProgram::train(const ResidentPass& pass, const ForwardInput& in,
                              std::span<float> statistics, const TensorView& input_gradient,
                              float smoothing, const Sums& sums) const {
  ensure(losses_.data() != nullptr, "a program that trains ends the graph");
  ensure(in.labels.size() == static_cast<size_t>(in.count), "every sample has a label");
  const int64_t classes = output_spec_.shape.back();
  ensure(std::ranges::all_of(in.labels, [&](int32_t l) { return l >= 0 && l < classes; }),
         "a label is one of the classes");
  check_input(in);
  if (backward_.empty()) throw InvalidInput("nothing of the model trains: freeze fewer layers");
  const auto lock = engine_->enter();
  const LossPass loss{smoothing, reinterpret_cast<float*>(losses_.data())};
  Run run = make_run(pass.weights, pass.tape);
  run.loss = &loss;
  run.loss_scale = sums.loss_scale;
  run.input_gradient = input_gradient.data;
  run_forward(run, pass.tape, in, statistics);
  run_backward(run, &sums);
  engine_->download(statistics.data(), statistics_.data(), average_bytes_);
  return read_loss();
}

void CudaProgram::backward_into(const ResidentPass& pass, const ConstTensorView& output_gradient,
                                const Sums& sums) const {
  ensure(options_.mode == Mode::kTraining, "only a training program has a backward pass");
  ensure(output_gradient.type == output_spec_.type, "the gradient has the output's type");
  const auto lock = engine_->enter();
  Run run = make_run(pass.weights, pass.tape);
  run.output_gradient = output_gradient.data;
  run.loss_scale = sums.loss_scale;
  run_backward(run, &sums);
  engine_->synchronize();
}

LossResult CudaProgram::read_loss() const {
  std::vector<float> results(losses_.bytes() / sizeof(float));
  engine_->download(results.data(), losses_.data(), losses_.bytes());
  LossResult loss;
  for (size_t i = 0; i < results.size(); i += 2) {
    loss.loss_sum += static_cast<double>(results[i]);
    loss.correct += results[i + 1] != 0 ? 1 : 0;
  }
  return loss;
}

}  // namespace outrigger::nn::cuda
