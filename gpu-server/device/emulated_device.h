#pragma once

#include <memory>

#include "api/launch.h"
#include "nn/program.h"
#include "training/planner/model/profile.h"
#include "worker/work/emulation.h"

namespace outrigger::gpu_server {

/// A device that only takes its time, and the server's own worker likewise on the machine's cores.
struct Emulation {
  /// Of the profile that the launch names. Throws InvalidInput, IoError.
  explicit Emulation(const api::Launch& launch);

  const training::Profile profile;
  const worker::EmulatedTimes times;
  worker::Pace device;
  worker::Pace local;
};

/// What takes the times of a profile's device. A GPU has arrays of its own, so that the host spends
/// no time on them: weights stay as they are. `emulation` must outlive it, and its programs.
std::unique_ptr<nn::Backend> make_emulated_device(Emulation& emulation);

}  // namespace outrigger::gpu_server
