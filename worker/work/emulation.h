#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/launch.h"
#include "common/clock.h"
#include "nn/program.h"
#include "transport/link.h"
#include "worker/work/pixel_source.h"

/// Machines that compute nothing and take their time, for experiments: a fast device and many
/// workers on few cores. Ledger, leases, links, optimizer and checkpoints are the real ones.
namespace outrigger::worker {

/// What a profile (`outrigger plan -o json`) says that the pieces of a micro-batch take; seconds of
/// one core of the machine that measured it.
struct EmulatedTimes {
  struct Layer {
    std::string name;
    double forward = 0;
    double backward = 0;
  };
  std::vector<Layer> layers;
  double decode = 0;
  int64_t micro_batch = 1;

  /// Forward and backward of the layers before a cut.
  double pass_seconds(int32_t cut) const;
};

/// Throws InvalidInput that names the file and what is wrong in it, IoError where it cannot be
/// read.
EmulatedTimes read_emulated_times(const std::filesystem::path& profile);

/// Cores that do one piece after the other: work() returns when they would be done. A sleep that
/// took too long is made good by the next piece: only time outside work() is idle. Thread-safe.
class Pace {
 public:
  explicit Pace(double cores) : cores_(cores) {}
  void work(double core_seconds);
  double cores() const { return cores_; }

 private:
  const double cores_;
  std::mutex mutex_;
  int working_ = 0;                      // threads inside work()
  TimePoint busy_until_{};               // of these cores' own time, which no sleep holds up
  std::optional<TimePoint> idle_since_;  // when the last thread left work()
};

/// Programs that take the times of the layers and give zeros of the right shapes. Compiling throws
/// InvalidInput for a network or a micro-batch size that the times are not of. `pace` must outlive
/// the programs.
std::unique_ptr<nn::Backend> make_emulated_backend(EmulatedTimes times, Pace& pace);

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
