#pragma once

#include <optional>
#include <span>
#include <string>

namespace outrigger::nn::cuda {

/// What CUDA tells about the machine before anything is tried on it.
struct DeviceFacts {
  int driver_version = 0;   // of CUDA that the driver speaks, as CUDA counts: 13000; 0: no driver
  int runtime_version = 0;  // of CUDA that this build has
  int device_count = 0;
  bool wants_bfloat16 = false;
  int wanted = 0;           // the device's number
  std::string count_error;  // what counting devices answered, where it failed
  std::string name;         // of the wanted device, where it is there
  int capability = 0;       // 90: compute capability 9.0
};

/// Compute capabilities that this build has machine code for, rising; for what is newer than the
/// last, the driver compiles its portable code.
std::span<const int> built_capabilities();

/// Why the device cannot be used and what to do about it; nothing where it can. Pure.
std::optional<std::string> why_unusable(const DeviceFacts& facts);

}  // namespace outrigger::nn::cuda
