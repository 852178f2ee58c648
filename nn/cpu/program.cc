#include "nn/cpu/program.h"

#include <algorithm>
#include <cstring>

#include "common/error.h"
#include "common/log.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/instruction_set.h"
#include "nn/cpu/onednn/primitive.h"

namespace outrigger::nn::cpu {
namespace {

struct CpuWeights final : Weights {
  explicit CpuWeights(size_t bytes) : memory(bytes) {}
  LargeMemory memory;
};

struct CpuTape : Tape {
  virtual std::byte* data() = 0;
};
struct OwnTape final : CpuTape {
  explicit OwnTape(LargeMemory its) : memory(std::move(its)) {}
  std::byte* data() override { return memory.data(); }
  LargeMemory memory;
};
struct SharedTape final : CpuTape {
  explicit SharedTape(std::shared_ptr<CpuWorkSpace> of) : space(std::move(of)) {}
  std::byte* data() override { return space->tape.data(); }
  std::shared_ptr<CpuWorkSpace> space;
};

std::shared_ptr<CpuWorkSpace> space_of(const ProgramOptions& options) {
  if (options.work_space == nullptr) return std::make_shared<CpuWorkSpace>();
  return std::static_pointer_cast<CpuWorkSpace>(options.work_space);
}

Shape batched(int64_t batch, const Shape& shape) {
  Shape all{batch};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

ElementType type_of(Precision precision) {
  return precision == Precision::kFloat32 ? ElementType::kFloat32 : ElementType::kBFloat16;
}

std::unique_ptr<Stopwatch> new_stopwatch(const Schedule& schedule) {
  auto watch = std::make_unique<Stopwatch>();
  watch->nanoseconds = std::vector<std::atomic<int64_t>>(schedule.pieces().size());
  return watch;
}

}  // namespace

CpuProgram::CpuProgram(const Graph& graph, const ProgramOptions& options, ThreadPool& threads)
    : options_(options),
      threads_(threads),
      blocks_(choose_blocks(graph, options.batch)),
      layers_(graph.size()),
      buffers_(blocks_),
      shares_space_(options.work_space != nullptr),
      space_(space_of(options)),
      slots_(threads.size()) {
  const Segment segment = options.segment;
  const auto layers = graph.layers();
  input_spec_ = segment.begin == 0
                    ? TensorSpec{ElementType::kUint8, batched(options.batch, graph.input())}
                    : TensorSpec{type_of(options.precision),
                                 batched(options.batch,
                                         layers[static_cast<size_t>(segment.begin - 1)].output)};
  output_spec_ = {segment.end == graph.size() ? ElementType::kFloat32 : type_of(options.precision),
                  batched(options.batch, layers[static_cast<size_t>(segment.end - 1)].output)};
  parameter_count_ = graph.parameter_range(segment).size;
  buffer_count_ = graph.buffer_range(segment).size;
  find_untrained(graph);
  Compilation compilation(graph, options, threads.size());
  plan(compilation);
  if (!options.time_layers) return;
  forward_watch_ = new_stopwatch(forward_);
  backward_watch_ = new_stopwatch(backward_);
}

void CpuProgram::find_untrained(const Graph& graph) {
  const Range all = graph.parameter_range(options_.segment);
  for (const Parameter& parameter : graph.parameters()) {
    if (parameter.layer < options_.segment.begin || parameter.layer >= options_.segment.end ||
        parameter.trainable)
      continue;
    untrained_.push_back({parameter.range.offset - all.offset, parameter.range.size});
  }
}

// A piece that does not say what it writes would have it told as ready too early.
void CpuProgram::check_gradients() const {
  int64_t floats = 0;
  for (const Range& range : untrained_) floats += range.size;
  for (const Piece& piece : backward_.pieces()) {
    for (const Range& range : piece.gradients) floats += range.size;
  }
  ensure(floats == parameter_count_, "every gradient is written by one piece, or does not train");
}

void CpuProgram::plan(Compilation& c) {
  // Primitives are planned for one thread as well as run on one.
  onednn::use_one_thread();
  operations_ = make_operations(c);
  for (const auto& operation : operations_) operation->announce(c);
  for (const auto& operation : operations_) operation->plan_forward(c);
  for (auto operation = operations_.rbegin(); operation != operations_.rend(); ++operation) {
    if (c.training() && c.value((*operation)->output()).wants_gradient)
      (*operation)->plan_backward(c);
  }
  buffers_ = c.buffers();
  forward_ = std::move(c.forward());
  backward_ = std::move(c.backward());
  forward_.finish(blocks_);
  backward_.finish(blocks_);
  if (c.training()) check_gradients();
  buffers_.assign(forward_, backward_);
  weight_bytes_ = c.weight_bytes();
  slot_bytes_ = c.slot_bytes();
  space_->scratch.reserve(buffers_.scratch_bytes());
  space_->slots.reserve(slot_bytes_ * static_cast<size_t>(slots_.size()));
  if (shares_space_) space_->tape.reserve(buffers_.tape_bytes());
}

std::unique_ptr<Weights> CpuProgram::new_weights() const {
  return std::make_unique<CpuWeights>(weight_bytes_);
}

std::unique_ptr<Tape> CpuProgram::new_tape_in(std::unique_ptr<Tape> former) const {
  if (shares_space_) return std::make_unique<SharedTape>(space_);
  LargeMemory memory;
  if (auto* const own = dynamic_cast<OwnTape*>(former.get())) memory = std::move(own->memory);
  memory.resize(buffers_.tape_bytes());
  return std::make_unique<OwnTape>(std::move(memory));
}

void CpuProgram::use_memory_of(Tape& tape) const {
  if (auto* const own = dynamic_cast<OwnTape*>(&tape)) own->memory.use();
}

void CpuProgram::load(Weights& weights, std::span<const float> parameters,
                      std::span<const float> buffers) const {
  ensure(static_cast<int64_t>(parameters.size()) == parameter_count_ &&
             static_cast<int64_t>(buffers.size()) == buffer_count_,
         "weights have the sizes of the segment's arenas");
  LoadArguments arguments{static_cast<CpuWeights&>(weights).memory.data(), parameters, buffers};
  threads_.parallel_for(static_cast<int>(operations_.size()), [&](int i) {
    onednn::use_one_thread();
    operations_[static_cast<size_t>(i)]->load(arguments);
  });
}

Run CpuProgram::make_run(const Weights& weights, Tape& tape) const {
  Run run;
  run.plan = &buffers_;
  run.slots = &slots_;
  run.tape = static_cast<CpuTape&>(tape).data();
  run.scratch = space_->scratch.data();
  run.slot_scratch = space_->slots.data();
  run.slot_bytes = slot_bytes_;
  run.weights = static_cast<const CpuWeights&>(weights).memory.data();
  return run;
}

void CpuProgram::forward(const Weights& weights, Tape& tape, const ForwardInput& in,
                         const ForwardOutput& out) const {
  const bool training = options_.mode == Mode::kTraining;
  ensure(in.count >= 1 && in.count <= options_.batch && (!training || in.count == options_.batch),
         "training takes whole micro-batches, inference 1 to batch samples");
  ensure(!training || static_cast<int64_t>(in.slots.size()) == in.count,
         "training has one slot a sample");
  ensure(in.input.type == input_spec_.type && out.output.type == output_spec_.type,
         "tensors have the program's types");
  ensure(!training || static_cast<int64_t>(out.statistics.size()) == buffer_count_,
         "statistics have the size of the segment's arena");
  const std::scoped_lock lock(space_->one_pass);
  Run run = make_run(weights, tape);
  run.in = &in;
  run.out = &out;
  const auto active = static_cast<int>((in.count + blocks_.size - 1) / blocks_.size);
  forward_.execute(threads_, run, active, watch_of(forward_watch_, forward_passes_));
}

void CpuProgram::backward(const Weights& weights, Tape& tape, ConstTensorView output_gradient,
                          const BackwardOutput& out) const {
  ensure(options_.mode == Mode::kTraining, "only a training program has a backward pass");
  ensure(static_cast<int64_t>(out.gradients.size()) == parameter_count_,
         "gradients have the size of the segment's arena");
  ensure(output_gradient.type == output_spec_.type, "the gradient has the output's type");
  const std::scoped_lock lock(space_->one_pass);
  for (const Range& range : untrained_)
    std::fill_n(out.gradients.begin() + range.offset, range.size, 0.0f);
  Run run = make_run(weights, tape);
  run.output_gradient = output_gradient.data;
  run.back = &out;
  backward_.execute(threads_, run, blocks_.count(), watch_of(backward_watch_, backward_passes_));
}

void CpuProgram::start_stopwatches() {
  times_all_ = true;
  forward_watch_ = new_stopwatch(forward_);
  backward_watch_ = new_stopwatch(backward_);
}

// Reading a thread's clock twice for each piece takes some per cent of a small network's pass. The
// first pass is cold.
Stopwatch* CpuProgram::watch_of(const std::unique_ptr<Stopwatch>& watch,
                                std::atomic<uint32_t>& passes) const {
  constexpr uint32_t kEvery = 32;
  if (watch == nullptr || (!times_all_ && passes++ % kEvery != 1)) return nullptr;
  ++watch->passes;
  return watch.get();
}

std::vector<LayerSeconds> CpuProgram::take_layer_seconds() const {
  if (forward_watch_ == nullptr || forward_watch_->passes + backward_watch_->passes == 0) return {};
  const Segment segment = options_.segment;
  std::vector<LayerSeconds> layers(static_cast<size_t>(segment.end - segment.begin));
  const auto add = [&](const Schedule& schedule, Stopwatch& watch, auto member) {
    const int passes = watch.passes.exchange(0);
    if (passes == 0) return;
    for (size_t i = 0; i < schedule.pieces().size(); ++i) {
      const double seconds = 1e-9 * static_cast<double>(watch.nanoseconds[i].exchange(0));
      layers[static_cast<size_t>(schedule.pieces()[i].layer - segment.begin)].*member +=
          static_cast<float>(seconds / passes);
    }
  };
  add(forward_, *forward_watch_, &LayerSeconds::forward);
  add(backward_, *backward_watch_, &LayerSeconds::backward);
  return layers;
}

namespace {

// Once a process: a job compiles many programs.
void log_missing_bfloat16() {
  static const bool logged = [] {
    log::warning("instruction set {} has no bfloat16: the engine computes in float32",
                 instruction_set());
    return true;
  }();
  static_cast<void>(logged);
}

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::shared_ptr<WorkSpace> make_work_space() const override {
    return std::make_shared<CpuWorkSpace>();
  }
  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options,
                                   ThreadPool& threads) const override {
    check_options(graph, options);
    ensure(options.groups == 1, "the CPU runs one micro-batch at a time");
    ensure(options.precision != Precision::kFloat16, "the CPU has no float16");
    if (options.precision == Precision::kBFloat16 && !computes_bfloat16()) log_missing_bfloat16();
    return std::make_unique<CpuProgram>(graph, options, threads);
  }
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace outrigger::nn::cpu
