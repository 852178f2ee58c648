#pragma once

#include <string>

namespace outrigger::nn::cuda {

/// The version of the NCCL that ranks would meet with, as NCCL counts: 22707 is 2.27.7. 0 where it
/// cannot be loaded or is too old; `why` says why.
int nccl_version(std::string& why);

}  // namespace outrigger::nn::cuda
