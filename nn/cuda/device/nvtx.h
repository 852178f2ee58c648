#pragma once

namespace outrigger::nn::cuda {

/// Names of what a process is doing, for NVIDIA's profilers (NVTX, github.com/NVIDIA/NVTX). Its
/// library is found when the first is named, as profilers' machines have it; without one nothing
/// happens. Of the calling thread; ranges nest.
void begin_range(const char* name);
void end_range();

}  // namespace outrigger::nn::cuda
