#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "nn/cuda/backend.h"
#include "nn/cuda/engine.h"
#include "nn/program.h"

namespace outrigger::nn::cuda {

/// Compiles a backend's programs for its engine. Thread-safe.
class Compiler {
 public:
  /// `recompute`: as CudaOptions'.
  Compiler(std::shared_ptr<Engine> engine, bool recompute)
      : engine_(std::move(engine)), recompute_(recompute) {}

  std::unique_ptr<Program> compile(const Graph& graph, const ProgramOptions& options) const;
  /// CudaProgram::kept_by_layers() of the program that keeps the most of those that are there.
  std::vector<MemoryUse> kept_by_layers() const;

 private:
  const std::shared_ptr<Engine> engine_;
  const bool recompute_;
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<const std::vector<MemoryUse>>> kept_;  // of programs
};

}  // namespace outrigger::nn::cuda
