#include "nn/cpu/fingerprint.h"

#include <span>

#include "common/bytes.h"
#include "common/hash.h"
#include "nn/cpu/program.h"
#include "nn/cpu/synthetic.h"

namespace outrigger::nn::cpu {

std::string numerics_fingerprint(const Graph& graph, int cut, int64_t batch, Precision precision,
                                 ThreadPool& threads) {
  if (cut == 0) return "";
  const ProgramOptions options{.segment = {0, cut}, .batch = batch, .precision = precision};
  const CpuProgram program(graph, options, threads);
  SyntheticPass pass(graph, options, program, 1);
  pass.run();
  ByteWriter writer;
  for (const auto bytes : {pass.output().view().raw(), std::as_bytes(std::span(pass.statistics())),
                           std::as_bytes(std::span(pass.gradients()))})
    writer.raw(sha256(bytes).data(), sizeof(Sha256));
  return to_hex(sha256(writer.take()));
}

}  // namespace outrigger::nn::cpu
