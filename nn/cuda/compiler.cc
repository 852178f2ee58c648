#include "nn/cuda/compiler.h"

#include "nn/cuda/memory_book.h"
#include "nn/cuda/pass_plan.h"
#include "nn/cuda/program.h"

namespace outrigger::nn::cuda {

std::unique_ptr<Program> Compiler::compile(const Graph& graph,
                                           const ProgramOptions& options) const {
  check_options(graph, options);
  std::vector<int> cuts;
  if (recompute_) cuts = choose_pieces(graph, options, *engine_);
  auto program = std::make_unique<CudaProgram>(graph, options, engine_, cuts);
  const std::scoped_lock lock(mutex_);
  std::erase_if(kept_, [](const auto& kept) { return kept.expired(); });
  kept_.push_back(program->kept_by_layers());
  return program;
}

std::vector<MemoryUse> Compiler::kept_by_layers() const {
  const std::scoped_lock lock(mutex_);
  std::vector<MemoryUse> most;
  for (const auto& one : kept_) {
    const auto kept = one.lock();
    if (kept != nullptr && sum(*kept) > sum(most)) most = *kept;
  }
  return most;
}

}  // namespace outrigger::nn::cuda
