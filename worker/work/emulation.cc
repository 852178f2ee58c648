#include "worker/work/emulation.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "common/error.h"

namespace outrigger::worker {
namespace {

Shape batched(int64_t batch, const Shape& shape) {
  Shape all{batch};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

void fill_with_zeros(const TensorView& view) {
  if (view.data != nullptr) std::memset(view.data, 0, view.bytes());
}

struct NoWeights final : nn::Weights {};
struct NoTape final : nn::Tape {};

class EmulatedCores final : public nn::Backend {
 public:
  EmulatedCores(EmulatedTimes times, Pace& pace) : times_(std::move(times)), pace_(pace) {}

  std::string name() const override { return "emulated cores"; }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& /*threads*/) const override {
    times_.check(graph);
    return std::make_unique<EmulatedProgram>(times_, times_.on_cores(options.segment, graph), pace_,
                                             graph, options);
  }

 private:
  const EmulatedTimes times_;
  Pace& pace_;
};

}  // namespace

TimePoint Pace::queue(double seconds) {
  const std::scoped_lock lock(mutex_);
  const TimePoint now = std::chrono::steady_clock::now();
  if (queued_++ == 0) busy_until_ = idle_since_ ? busy_until_ + (now - *idle_since_) : now;
  busy_until_ +=
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds / cores_));
  return busy_until_;
}

void Pace::finish(TimePoint until) {
  std::this_thread::sleep_until(until);
  const std::scoped_lock lock(mutex_);
  if (--queued_ == 0) idle_since_ = std::chrono::steady_clock::now();
}

EmulatedProgram::EmulatedProgram(const EmulatedTimes& times, EmulatedTimes::Pass seconds,
                                 Pace& pace, const nn::Graph& graph,
                                 const nn::ProgramOptions& options)
    : pace_(pace) {
  nn::check_options(graph, options);
  const int64_t samples = options.batch / options.groups;
  if (samples != times.micro_batch && options.mode == nn::Mode::kTraining)
    throw InvalidInput("the profile to emulate is of micro-batches of " +
                       std::to_string(times.micro_batch) + " samples, the job's have " +
                       std::to_string(samples));
  const double part = static_cast<double>(options.batch) / static_cast<double>(times.micro_batch);
  seconds_ = {part * seconds.forward, part * seconds.backward};
  const auto [begin, end] = options.segment;
  const ElementType type =
      options.precision == nn::Precision::kFloat32 ? ElementType::kFloat32 : ElementType::kBFloat16;
  const auto output_of = [&](int layer) {
    return batched(options.batch, graph.layers()[static_cast<size_t>(layer)].output);
  };
  input_ = begin == 0 ? nn::TensorSpec{ElementType::kUint8, batched(options.batch, graph.input())}
                      : nn::TensorSpec{type, output_of(begin - 1)};
  output_ = {end == graph.size() ? ElementType::kFloat32 : type, output_of(end - 1)};
}

std::unique_ptr<nn::Weights> EmulatedProgram::new_weights() const {
  return std::make_unique<NoWeights>();
}

std::unique_ptr<nn::Tape> EmulatedProgram::new_tape() const { return std::make_unique<NoTape>(); }

void EmulatedProgram::forward(const nn::Weights& /*weights*/, nn::Tape& /*tape*/,
                              const nn::ForwardInput& /*in*/, const nn::ForwardOutput& out) const {
  pace_.work(seconds_.forward);
  fill_with_zeros(out.output);
  std::ranges::fill(out.statistics, 0.0f);
}

void EmulatedProgram::backward(const nn::Weights& /*weights*/, nn::Tape& /*tape*/,
                               ConstTensorView /*output_gradient*/,
                               const nn::BackwardOutput& out) const {
  pace_.work(seconds_.backward);
  fill_with_zeros(out.input_gradient);
  std::ranges::fill(out.gradients, 0.0f);
}

std::unique_ptr<nn::Backend> make_emulated_cores(EmulatedTimes times, Pace& pace) {
  return std::make_unique<EmulatedCores>(std::move(times), pace);
}

Duration EmulatedPixels::make(const feed::LeaseSample& sample, bool /*evaluation*/,
                              std::span<std::byte> pixels) {
  pace_.work(seconds_);
  std::ranges::fill(pixels, std::byte{0});
  const uint64_t told[] = {sample.slot, sample.id};
  std::memcpy(pixels.data(), told, std::min(pixels.size(), sizeof told));
  return Duration{0};
}

transport::LinkOptions link_options(const api::Launch& launch) {
  constexpr double kBytesAMegabit = 1e6 / 8;
  transport::LinkOptions options;
  options.bytes_per_second = launch.link_megabits * kBytesAMegabit;
  options.delay = std::chrono::milliseconds(launch.link_milliseconds);
  return options;
}

}  // namespace outrigger::worker
