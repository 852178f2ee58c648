#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>

#include "api/launch.h"
#include "api/training_job.h"
#include "common/thread_pool.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "worker/protocol/protocol.h"
#include "worker/work/agent.h"
#include "worker/work/emulated_times.h"
#include "worker/work/emulation.h"
#include "worker/work/pixel_source.h"

namespace outrigger::worker {

/// Everything that a worker makes from the server's first words.
class Workshop {
 public:
  /// `threads` must outlive this. Throws InvalidInput where the words cannot be followed.
  Workshop(const Setup& setup, const api::Launch& launch, ThreadPool& threads);

  /// What the worker answers, its name left out. Imposes the server's instruction set on this
  /// process where stems must agree; one that lacks it, or has computed with another, runs none.
  /// Reading the data is a turn of `turns`; timing the stem, which may take longer than a piece of
  /// work and ends by itself, is none. Throws Cancelled when asked to stop, between two passes.
  Hello hello(const Setup& setup, std::atomic<uint64_t>& turns, const std::stop_token& stop) const;

  const api::TrainingJob& job() const { return job_; }
  Agent& agent() { return agent_; }

 private:
  std::unique_ptr<PixelSource> make_pixels(const api::Launch& launch);
  void time_stem(const Setup& setup, const std::stop_token& stop, Hello& hello) const;

  ThreadPool& threads_;
  const api::TrainingJob job_;
  const nn::Graph graph_;
  Pace pace_;
  const std::optional<EmulatedTimes> times_;  // of an emulated machine
  const std::unique_ptr<nn::Backend> backend_;
  const std::filesystem::path train_root_;
  const std::unique_ptr<PixelSource> pixels_;
  Agent agent_;
};

}  // namespace outrigger::worker
