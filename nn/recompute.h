#pragma once

#include <memory>
#include <vector>

#include "nn/program.h"

namespace outrigger::nn {

/// The layer from which a segment's backward pass computes again: all before it is frozen. The
/// segment's end where all of it is.
int recompute_begin(const Graph& graph, Segment segment);

/// Where a segment is divided so that keeping what enters each piece, for `in_flight`
/// micro-batches, and all of one piece takes least: legal cuts inside it, rising; none where it is
/// kept whole. What is frozen before all that trains is a piece of its own, of which nothing is
/// kept.
std::vector<int> recompute_cuts(const Graph& graph, Segment segment, int in_flight);
/// The same with as many micro-batches as are usually in flight: one behind a cut, where backward
/// follows forward; a worker's credits before it.
std::vector<int> recompute_cuts(const Graph& graph, Segment segment);

/// Those that it chooses among: for each bound on what a piece keeps the fewest pieces, from two
/// pieces to many.
std::vector<std::vector<int>> recompute_divisions(const Graph& graph, Segment segment);

/// A backend whose training programs keep of a micro-batch only what enters their pieces, and
/// compute the rest again in the backward pass, in memory that pieces and micro-batches share: up
/// to one more forward pass for less memory. The numbers are those of the pieces run as programs of
/// `backend`, which on CPUs in float32 are bitwise those of the whole. Inference is `backend`'s
/// own.
std::unique_ptr<Backend> make_recomputing(std::unique_ptr<Backend> backend);

}  // namespace outrigger::nn
