#include "gpu-server/device/emulated_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "common/error.h"
#include "common/file.h"
#include "common/thread_pool.h"
#include "nn/resident.h"

namespace outrigger::gpu_server {
namespace {

using worker::EmulatedProgram;
using worker::EmulatedTimes;
using worker::Pace;

/// A run's arrays on a GPU that does not exist: those of the host stay what they are.
class EmulatedResident final : public nn::Resident {
 public:
  EmulatedResident(double optimizer, Pace& pace) : optimizer_(optimizer), pace_(pace) {}
  ~EmulatedResident() override { finish_all(); }

  void put(const nn::ResidentArrays& /*host*/) override {}
  void fetch(const nn::ResidentArrays& /*host*/) override {}
  void fetch_parameters(nn::Range /*range*/, std::span<float> /*to*/) override {}
  void load(const nn::Program& /*program*/, nn::Weights& /*weights*/,
            std::span<const float> /*buffers*/) override {}
  void clear_gradients() override {}
  void stage(const nn::ResidentPass& /*pass*/,
             std::span<const nn::ForwardInput> /*parts*/) override {}

  void train(const nn::ResidentPass& pass, const nn::ResidentTargets& targets,
             float /*loss_scale*/) override {
    const EmulatedTimes::Pass seconds = program_of(pass).seconds();
    const Shape logits = pass.program.output_spec().shape;
    // As where all classes are equally likely.
    const double loss = static_cast<double>(logits.front()) * std::log(logits.back());
    passes_.push_back({pace_.queue(seconds.forward + seconds.backward), targets, loss});
    times_.forward += seconds.forward / pace_.cores();
    times_.backward += seconds.backward / pace_.cores();
  }
  nn::LossResult collect() override {
    ensure(!passes_.empty(), "what is collected was queued");
    const Pass done = passes_.front();
    passes_.pop_front();
    pace_.finish(done.until);
    std::ranges::fill(done.targets.statistics, 0.0f);
    const TensorView& gradient = done.targets.input_gradient;
    if (gradient.data != nullptr) std::memset(gradient.data, 0, gradient.bytes());
    return {.loss_sum = done.loss};
  }
  void backward(const nn::ResidentPass& pass, const ConstTensorView& /*output_gradient*/,
                float /*loss_scale*/) override {
    const double seconds = program_of(pass).seconds().backward;
    queued_.push_back(pace_.queue(seconds));
    times_.backward += seconds / pace_.cores();
  }
  void add_gradients(nn::Range /*range*/, std::span<const float> /*gradients*/) override {}
  bool join(const nn::RankGroup& /*ranks*/) override { return false; }
  void sum_over_ranks() override { ensure(false, "emulated GPUs do not meet"); }
  void fetch_gradients(std::span<float> gradients) override { std::ranges::fill(gradients, 0.0f); }
  void put_gradients(std::span<const float> /*gradients*/) override {}

  nn::ResidentUpdated update(const nn::ResidentUpdate& /*update*/) override {
    queued_.push_back(pace_.queue(optimizer_));
    times_.optimizer += optimizer_ / pace_.cores();
    finish_queued();
    return {};
  }
  nn::ResidentTimes take_times() override { return std::exchange(times_, {}); }

 private:
  struct Pass {
    TimePoint until;
    nn::ResidentTargets targets;
    double loss = 0;
  };
  static const EmulatedProgram& program_of(const nn::ResidentPass& pass) {
    return dynamic_cast<const EmulatedProgram&>(pass.program);
  }
  void finish_queued() {
    for (const TimePoint until : queued_) pace_.finish(until);
    queued_.clear();
  }
  void finish_all() {
    for (const Pass& pass : passes_) pace_.finish(pass.until);
    finish_queued();
  }

  const double optimizer_;
  Pace& pace_;
  std::deque<Pass> passes_;        // to be collected
  std::vector<TimePoint> queued_;  // what nobody collects
  nn::ResidentTimes times_;
};

class EmulatedGpu final : public nn::Backend {
 public:
  explicit EmulatedGpu(Emulation& emulation) : times_(emulation.times), pace_(emulation.device) {}

  std::string name() const override { return "emulated GPU"; }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& /*threads*/) const override {
    times_.check(graph);
    return std::make_unique<EmulatedProgram>(times_, times_.on_device(options.segment, graph),
                                             pace_, graph, options);
  }
  bool unpacks_int8() const override { return true; }
  std::unique_ptr<nn::Resident> make_resident(
      const nn::Graph& /*graph*/, const nn::ResidentOptions& /*options*/) const override {
    return std::make_unique<EmulatedResident>(times_.optimizer, pace_);
  }

 private:
  const EmulatedTimes& times_;
  Pace& pace_;
};

}  // namespace

Emulation::Emulation(const api::Launch& launch)
    : profile(training::read_profile(read_file(*launch.emulate), launch.emulate->string())),
      times(worker::read_emulated_times(*launch.emulate)),
      device(launch.emulate_cores),
      local(launch.threads.value_or(available_cores())) {}

std::unique_ptr<nn::Backend> make_emulated_device(Emulation& emulation) {
  if (emulation.times.of_gpu()) return std::make_unique<EmulatedGpu>(emulation);
  return worker::make_emulated_cores(emulation.times, emulation.device);
}

}  // namespace outrigger::gpu_server
