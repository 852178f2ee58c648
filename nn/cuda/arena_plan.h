#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace outrigger::nn::cuda {

/// A piece of memory that is needed from one moment to another, both included.
struct ArenaRequest {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

/// Where each request lies in one arena, and how large that must be.
struct ArenaPlan {
  std::vector<size_t> offsets;
  size_t bytes = 0;
};

/// Every place is a multiple of this: what CUDA's own allocations have, and cuDNN's fastest kernels
/// ask for less.
inline constexpr size_t kArenaAlignment = 256;

size_t aligned(size_t bytes);

/// Places requests so that two that are needed at one moment never overlap: the largest first, each
/// at the lowest place that is free (Pisarchyk and Lee, "Efficient memory management for deep
/// neural net inference", 2020, greedy by size). Pure; the same requests give the same plan.
ArenaPlan plan_arena(std::span<const ArenaRequest> requests);

}  // namespace outrigger::nn::cuda
