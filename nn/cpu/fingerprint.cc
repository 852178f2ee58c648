#include "nn/cpu/fingerprint.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "nn/cpu/program.h"
#include "nn/cpu/synthetic.h"

namespace outrigger::nn::cpu {
namespace {

double seconds_of(SyntheticPass& pass, const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("asked to stop");
  const auto begin = std::chrono::steady_clock::now();
  pass.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The shortest of up to three passes: something else may run on a machine where a process starts.
double shortest_pass(SyntheticPass& pass, const std::stop_token& stop) {
  constexpr int kMost = 3;
  constexpr double kEnough = 0.3;
  double shortest = std::numeric_limits<double>::infinity();
  double all = 0;
  for (int i = 0; i < kMost && all < kEnough; ++i) {
    const double took = seconds_of(pass, stop);
    shortest = std::min(shortest, took);
    all += took;
  }
  return shortest;
}

}  // namespace

Numerics measure_numerics(const Graph& graph, int cut, int64_t batch, Precision precision,
                          ThreadPool& threads, const std::stop_token& stop) {
  if (cut == 0) return {};
  const ProgramOptions options{.segment = {0, cut}, .batch = batch, .precision = precision};
  CpuProgram program(graph, options, threads);
  program.start_stopwatches();
  SyntheticPass pass(graph, options, program, 1);
  const double cold = seconds_of(pass, stop);
  ByteWriter writer;
  for (const auto bytes : {pass.output().view().raw(), std::as_bytes(std::span(pass.statistics())),
                           std::as_bytes(std::span(pass.gradients()))})
    writer.raw(sha256(bytes).data(), sizeof(Sha256));
  constexpr double kLong = 5;  // so long a pass need not run again
  Numerics numerics{to_hex(sha256(writer.take())), cold};
  if (cold < kLong) {
    program.start_stopwatches();
    numerics.seconds = shortest_pass(pass, stop);
  }
  numerics.layers = program.take_layer_seconds();
  return numerics;
}

}  // namespace outrigger::nn::cpu
