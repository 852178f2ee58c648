#include "nn/cuda/program.h"

#include <algorithm>

#include "common/error.h"

namespace outrigger::nn::cuda {
namespace {

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

constexpr const char* kCopyOfWeights = "a copy of the weights";

std::string kept_text(int64_t batch) {
  return "what a micro-batch of " + std::to_string(batch) + " keeps for its backward pass";
}

}  // namespace

CudaProgram::CudaProgram(const Graph& graph, const ProgramOptions& options,
                         std::shared_ptr<Engine> engine, const std::vector<int>& cuts)
    : options_(options),
      engine_(std::move(engine)),
      shares_space_(options.work_space != nullptr),
      space_(shares_space_ ? std::static_pointer_cast<CudaWorkSpace>(options.work_space)
                           : std::make_shared<CudaWorkSpace>(engine_)) {
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
  plan_ = plan_pass(compilation, cuts);
  name_kept(graph);
  parameter_bytes_ = compilation.parameter_bytes();
  average_bytes_ = compilation.average_bytes();
  averages_at_ = aligned(parameter_bytes_);
  weight_bytes_ = compilation.weight_bytes();
  find_untrained(graph, compilation);
  find_measured(graph);
  plan_gradient_buckets(graph, compilation);
  plan_pieces();
  take_memory();
}

void CudaProgram::take_memory() {
  const int64_t batch = options_.batch;
  const bool training = options_.mode == Mode::kTraining;
  space_->reserve(CudaWorkSpace::kScratch, scratch_bytes(),
                  "what one pass computes with (micro-batches of " + std::to_string(batch) + ")",
                  batch);
  if (training) {
    const auto groups = static_cast<size_t>(options_.groups);
    told_bytes_ = 2 * static_cast<size_t>(batch) * sizeof(float) + groups * average_bytes_;
    space_->reserve(CudaWorkSpace::kGradients, parameter_bytes_, "the gradients");
    space_->reserve(CudaWorkSpace::kTold, told_bytes_, "losses and batch norms' statistics", batch);
  }
  if (!shares_space_) return;
  space_->reserve(CudaWorkSpace::kTape, tape_bytes(), kept_text(batch), batch);
  space_->reserve(CudaWorkSpace::kWeights, weight_bytes_, kCopyOfWeights);
  if (training && ends_graph_) space_->ring(input_spec_);
}

ProgramMemory CudaProgram::memory() const {
  const auto samples = static_cast<size_t>(options_.batch);
  return {.kept = tape_bytes() + samples * (sizeof(uint64_t) + sizeof(int32_t)),
          .weights = weight_bytes_,
          .work_space = scratch_bytes() + (told_bytes_ > 0 ? parameter_bytes_ : 0) + told_bytes_};
}

std::unique_ptr<Weights> CudaProgram::new_weights() const {
  if (shares_space_) return std::make_unique<CudaWeights>(DeviceMemory());
  return std::make_unique<CudaWeights>(
      DeviceMemory(engine_, std::max<size_t>(weight_bytes_, 1), kCopyOfWeights));
}

std::unique_ptr<Tape> CudaProgram::new_tape() const {
  auto tape = std::make_unique<CudaTape>();
  const int64_t m = options_.batch;
  if (!shares_space_) tape->memory = DeviceMemory(engine_, tape_bytes(), kept_text(m), m);
  tape->slots = DeviceMemory(engine_, static_cast<size_t>(m) * sizeof(uint64_t), "slots");
  tape->labels = DeviceMemory(engine_, static_cast<size_t>(m) * sizeof(int32_t), "labels");
  if (options_.mode == Mode::kInference) take_input_memory(*tape);
  return tape;
}

void CudaProgram::load(Weights& weights, std::span<const float> parameters,
                       std::span<const float> buffers) const {
  ensure(parameters.size_bytes() == parameter_bytes_ && buffers.size_bytes() == average_bytes_,
         "weights have the sizes of the segment's arenas");
  const auto lock = engine_->enter();
  std::byte* memory = memory_of(weights);
  engine_->upload(memory, parameters.data(), parameter_bytes_);
  engine_->upload(memory + averages_at_, buffers.data(), average_bytes_);
  for (const auto& step : plan_.steps) step->load(*engine_, memory);
}

void CudaProgram::load_from_device(Weights& weights, const float* parameters,
                                   std::span<const float> buffers) const {
  ensure(buffers.size_bytes() == average_bytes_, "averages have the size of the segment's arena");
  const auto lock = engine_->enter();
  std::byte* memory = memory_of(weights);
  engine_->copy(memory, parameters, parameter_bytes_);
  engine_->upload(memory + averages_at_, buffers.data(), average_bytes_);
  for (const auto& step : plan_.steps) step->load(*engine_, memory);
}

std::byte* CudaProgram::memory_of(const Weights& weights) const {
  if (shares_space_) return space_->data(CudaWorkSpace::kWeights);
  return static_cast<const CudaWeights&>(weights).memory.data();
}

Run CudaProgram::make_run(const Weights& weights, const Tape& tape) const {
  const auto& mine = static_cast<const CudaTape&>(tape);
  Run run;
  run.engine = engine_.get();
  run.plan = &plan_.buffers;
  run.tape = shares_space_ ? space_->data(CudaWorkSpace::kTape) : mine.memory.data();
  run.scratch = space_->data(CudaWorkSpace::kScratch);
  run.weights = memory_of(weights);
  if (told_bytes_ > 0) run.statistics = told_statistics();
  run.gradients = gradients();
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

size_t CudaProgram::input_bytes() const {
  return static_cast<size_t>(element_count(input_spec_.shape)) * element_size(input_spec_.type);
}

void CudaProgram::take_input_memory(CudaTape& tape) const {
  tape.input = DeviceMemory(engine_, input_bytes(), "the input", options_.batch);
}

void CudaProgram::bring(Run& run, Tape& tape, const ForwardInput& in) const {
  auto& mine = static_cast<CudaTape&>(tape);
  const size_t all = input_bytes();
  const size_t present = all / static_cast<size_t>(options_.batch) * static_cast<size_t>(in.count);
  if (mine.input.bytes() == 0) take_input_memory(mine);
  engine_->upload(mine.input.data(), in.input.data, present);
  // What is absent is computed on all the same, and must not be what another run left.
  if (present < all) engine_->clear(mine.input.data() + present, all - present);
  engine_->upload(mine.slots.data(), in.slots.data(), in.slots.size_bytes());
  engine_->upload(mine.labels.data(), in.labels.data(), in.labels.size_bytes());
  mine.labelled = !in.labels.empty();
  run.labels = mine.labelled ? reinterpret_cast<const int32_t*>(mine.labels.data()) : nullptr;
  run.input = mine.input.data();
  run.count = in.count;
}

void CudaProgram::run_forward(Run& run, size_t first, size_t end) const {
  for (size_t i = first; i < end; ++i) {
    run.moment = static_cast<int>(i);
    plan_.steps[i]->forward(run);
  }
}

// All but the output, which went out.
void CudaProgram::recall(Run& run, const Tape& tape) const {
  if (recalled_ != &tape && plan_.unkept < steps()) run_forward(run, plan_.unkept, steps() - 1);
  recalled_ = nullptr;
}

void CudaProgram::run_backward(Run& run, size_t first, size_t last) const {
  for (size_t i = first; i < last; ++i) {
    const auto& [step, again] = plan_.backward[i];
    run.moment = static_cast<int>(steps() + i);
    if (again) {
      step->forward(run);
    } else {
      step->backward(run);
    }
  }
}

void CudaProgram::finish_bucket(Range bucket, const Sums* sums) const {
  for (const Range range : untrained_) {
    if (range.offset >= bucket.offset && range.offset < bucket.end())
      engine_->clear(gradients() + range.offset, floats(range));
  }
  if (sums == nullptr) return;
  float* to = sums->gradients + bucket.offset;
  engine_->kernels().add_scaled(gradients() + bucket.offset, 1 / sums->loss_scale, to,
                                static_cast<uint32_t>(bucket.size));
}

void CudaProgram::copy_measured(const float* from, std::span<float> statistics, Range row) const {
  const auto columns = static_cast<int64_t>(average_bytes_ / sizeof(float));
  ensure(static_cast<int64_t>(statistics.size()) == options_.groups * row.size,
         "statistics have a row a group");
  for (int64_t group = 0; group < options_.groups; ++group) {
    for (const Range range : measured_) {
      std::copy_n(from + group * columns + range.offset, range.size,
                  statistics.begin() + group * row.size + row.offset + range.offset);
    }
  }
}

void CudaProgram::forward(const Weights& weights, Tape& tape, const ForwardInput& in,
                          const ForwardOutput& out) const {
  check_input(in);
  const auto lock = engine_->enter();
  Run run = make_run(weights, tape);
  run.out = &out;
  bring(run, tape, in);
  run_forward(run, 0, steps());
  recalled_ = &tape;
  if (options_.mode == Mode::kTraining && !measured_.empty()) {
    std::vector<float> measured(static_cast<size_t>(options_.groups) * average_bytes_ /
                                sizeof(float));
    engine_->download(measured.data(), told_statistics(), measured.size() * sizeof(float));
    copy_measured(measured.data(), out.statistics,
                  {0, static_cast<int64_t>(average_bytes_ / sizeof(float))});
  }
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
  engine_->clear(gradients(), parameter_bytes_);
  recall(run, tape);
  run_backward(run, 0, plan_.backward.size());
  for (const GradientBucket& bucket : buckets_) finish_bucket(bucket.range, nullptr);
  engine_->download(out.gradients.data(), gradients(), parameter_bytes_);
  engine_->synchronize();
}

}  // namespace outrigger::nn::cuda
