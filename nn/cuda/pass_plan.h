#pragma once

#include <cstddef>
#include <vector>

#include "nn/cuda/compilation.h"
#include "nn/cuda/operations/step.h"
#include "nn/graph.h"
#include "nn/program.h"

namespace outrigger::nn::cuda {

/// One turn of the backward pass: a step's own, or the forward once more of one whose results were
/// not kept.
struct Turn {
  const Step* step = nullptr;
  bool again = false;
};

/// What a program does, in which order and in which memory. Forward step i runs at moment i,
/// backward turn i at moment steps.size() + i.
struct PassPlan {
  Steps steps;
  Steps again;  // of turns that run forward once more; of others null
  std::vector<Turn> backward;
  /// From this step on, what backward needs of the forward pass lies in the scratch arena: a tape
  /// whose turn comes when another forward pass has been there has these steps run once more, all
  /// but the last. Without recomputing the number of steps.
  size_t unkept = 0;
  BufferPlan buffers;
};

/// Without `cuts`, all that backward needs is kept. With them (numbers of layers, legal cuts inside
/// the segment, rising) the pieces that they divide it into are computed again, from the last but
/// one to the first, each right before its backward: from what enters it, which is kept. The last
/// piece's backward follows its forward, so it is not computed again. A piece that nothing of
/// trains has no backward, and no second forward either. The compilation's buffers go.
PassPlan plan_pass(Compilation& compilation, const std::vector<int>& cuts);

/// Where to divide so that tape and scratch arena take least, as planned; none in inference, or
/// where keeping all takes least. What is frozen before all that trains keeps nothing, and is a
/// piece of its own.
std::vector<int> choose_pieces(const Graph& graph, const ProgramOptions& options, Engine& engine);

}  // namespace outrigger::nn::cuda
