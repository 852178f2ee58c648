#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "api/launch.h"
#include "common/clock.h"
#include "nn/program.h"
#include "transport/link.h"
#include "worker/work/emulated_times.h"
#include "worker/work/pixel_source.h"

/// Machines that compute nothing and take their time, for experiments: a fast device and many
/// workers on few cores. Ledger, leases, links, optimizer and checkpoints are the real ones.
namespace outrigger::worker {

/// Cores, or GPUs, that do one piece after the other: work() returns when they would be done. A
/// sleep that took too long is made good by the next piece: only time without a piece is idle.
/// Thread-safe.
class Pace {
 public:
  explicit Pace(double cores) : cores_(cores) {}
  void work(double seconds) { finish(queue(seconds)); }  // of one of them
  /// Begins a piece behind those that are queued; when it will be done. Each is to be finished.
  TimePoint queue(double seconds);
  void finish(TimePoint until);
  double cores() const { return cores_; }

 private:
  const double cores_;
  std::mutex mutex_;
  int queued_ = 0;                       // pieces that are not finished
  TimePoint busy_until_{};               // of these cores' own time, which no sleep holds up
  std::optional<TimePoint> idle_since_;  // when the last piece was finished
};

/// Takes its time and gives zeros of the right shapes.
class EmulatedProgram final : public nn::Program {
 public:
  /// `seconds`: of a micro-batch of `times`, of which the options may have a part or several.
  /// Throws InvalidInput for a network or a micro-batch size that the times are not of. `pace` must
  /// outlive this.
  EmulatedProgram(const EmulatedTimes& times, EmulatedTimes::Pass seconds, Pace& pace,
                  const nn::Graph& graph, const nn::ProgramOptions& options);

  EmulatedTimes::Pass seconds() const { return seconds_; }
  nn::TensorSpec input_spec() const override { return input_; }
  nn::TensorSpec output_spec() const override { return output_; }
  std::unique_ptr<nn::Weights> new_weights() const override;
  std::unique_ptr<nn::Tape> new_tape() const override;
  void load(nn::Weights& /*weights*/, std::span<const float> /*parameters*/,
            std::span<const float> /*buffers*/) const override {}
  void forward(const nn::Weights& weights, nn::Tape& tape, const nn::ForwardInput& in,
               const nn::ForwardOutput& out) const override;
  void backward(const nn::Weights& weights, nn::Tape& tape, ConstTensorView output_gradient,
                const nn::BackwardOutput& out) const override;

 private:
  Pace& pace_;
  EmulatedTimes::Pass seconds_;
  nn::TensorSpec input_;
  nn::TensorSpec output_;
};

/// Programs that take the times of the layers on cores. `pace` must outlive them.
std::unique_ptr<nn::Backend> make_emulated_cores(EmulatedTimes times, Pace& pace);

/// Pixels that tell sample and slot and nothing else; they take their part of `times.decode`.
class EmulatedPixels final : public PixelSource {
 public:
  /// `pace` must outlive this.
  EmulatedPixels(const EmulatedTimes& times, Pace& pace)
      : seconds_(times.decode / static_cast<double>(times.micro_batch)), pace_(pace) {}
  Duration make(const feed::LeaseSample& sample, bool evaluation,
                std::span<std::byte> pixels) override;

 private:
  const double seconds_;  // a sample
  Pace& pace_;
};

/// In place of the fingerprint of a machine's arithmetic: emulated machines agree with each other.
inline constexpr const char* kEmulatedNumerics = "emulated";

/// The limits that a launch sets to its links, for experiments; none by default.
transport::LinkOptions link_options(const api::Launch& launch);

}  // namespace outrigger::worker
