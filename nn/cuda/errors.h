#pragma once

#include <cstdint>
#include <string>

#include "common/error.h"

namespace outrigger::nn::cuda {

/// There is no device that can be used: none at all, a driver that is too old, an architecture that
/// this build has no code for, or a build without CUDA. The text says which, and what to do.
class NoDevice : public Error {
 public:
  using Error::Error;
};

/// A call of CUDA, cuDNN or cuBLAS failed in a way that no input explains.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// The device's memory does not hold what was asked for, or the host's what is to be pinned there;
/// the text says which.
class OutOfDeviceMemory : public Error {
 public:
  using Error::Error;
};

/// Another rank of the job does not answer any more, or told of an error.
class RankLost : public Error {
 public:
  using Error::Error;
};

/// What was asked for when memory ran out. All in bytes.
struct Shortage {
  std::string what;  // "what a micro-batch of 64 keeps for its backward pass"
  int64_t asked = 0;
  int64_t free = 0;
  int64_t total = 0;
  int64_t batch = 0;  // the asked grow with it; 0: they do not
};

/// "asked for 12.0 GiB for …; 3.1 GiB of 139.8 GiB are free; a micro-batch of 16 would fit". Pure.
std::string describe(const Shortage& shortage);

}  // namespace outrigger::nn::cuda
