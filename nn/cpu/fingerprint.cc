#include "nn/cpu/fingerprint.h"

#include <chrono>
#include <span>

#include "common/bytes.h"
#include "common/hash.h"
#include "nn/cpu/program.h"
#include "nn/cpu/synthetic.h"

namespace outrigger::nn::cpu {

Numerics measure_numerics(const Graph& graph, int cut, int64_t batch, Precision precision,
                          ThreadPool& threads) {
  if (cut == 0) return {};
  const ProgramOptions options{.segment = {0, cut}, .batch = batch, .precision = precision};
  const CpuProgram program(graph, options, threads);
  SyntheticPass pass(graph, options, program, 1);
  pass.run();
  ByteWriter writer;
  for (const auto bytes : {pass.output().view().raw(), std::as_bytes(std::span(pass.statistics())),
                           std::as_bytes(std::span(pass.gradients()))})
    writer.raw(sha256(bytes).data(), sizeof(Sha256));
  const auto begin = std::chrono::steady_clock::now();
  pass.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {to_hex(sha256(writer.take())), took.count()};
}

}  // namespace outrigger::nn::cpu
