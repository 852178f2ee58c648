#include "gpu-server/links/introduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/write.h"
#include "common/log.h"
#include "gpu-server/job/job_plan.h"
#include "nn/cpu/fingerprint.h"
#include "nn/cpu/instruction_set.h"
#include "transport/link.h"
#include "worker/job.h"
#include "worker/work/agent.h"
#include "worker/work/emulation.h"

namespace outrigger::gpu_server {

double scoring_memory(const nn::Graph& graph, int64_t images) {
  constexpr double kCopies = 3;      // weights as they come and packed, and tensors between layers
  constexpr double kMessage = 4096;  // what a frame holds besides the weights, and more
  const auto arenas = static_cast<double>(graph.parameter_count() + graph.buffer_count());
  if (sizeof(float) * arenas + kMessage > transport::LinkOptions{}.max_frame_bytes)
    return std::numeric_limits<double>::infinity();
  int64_t largest = 0;
  for (const nn::Layer& layer : graph.layers())
    largest = std::max(largest, element_count(layer.output));
  return kCopies * sizeof(float) * static_cast<double>(graph.parameter_count() + images * largest);
}

feed::Crossings crossings_of(const nn::Graph& graph, ElementType activations) {
  feed::Crossings crossings;
  for (const nn::Cut& cut : graph.cuts()) {
    const auto statistics = static_cast<size_t>(graph.buffer_range({0, cut.layers}).size);
    const ElementType type = cut.layers == 0 ? ElementType::kUint8 : activations;
    crossings[cut.layers] = {type, cut.shape, statistics};
  }
  return crossings;
}

JoinTerms join_terms(const api::TrainingJob& job, const nn::Graph& graph,
                     const data::Dataset& train, const std::filesystem::path& train_root,
                     uint64_t incarnation, ThreadPool& threads, const OpenDevice& device) {
  JoinTerms terms;
  api::TrainingJob told = job;
  told.spec.server.pod_template.reset();
  told.spec.workers.pod_template.reset();
  terms.setup.job = api::to_json_text(told);
  terms.setup.classes = static_cast<uint32_t>(train.classes().size());
  terms.setup.incarnation = static_cast<uint32_t>(incarnation);
  terms.setup.deepest_cut = deepest_cut(job, graph);
  terms.setup.instruction_set = nn::cpu::instruction_set();
  terms.setup.probe = data::choose_probe(train, worker::seed(job));
  terms.micro_batch = worker::micro_batch(job);
  terms.scoring_memory = scoring_memory(graph, worker::scored_at_once(worker::micro_batch(job)));
  const auto& evaluate = job.spec.training.evaluate;
  if (std::isinf(terms.scoring_memory) && evaluate &&
      evaluate->place == api::EvaluationPlace::kWorkers)
    log::warning(
        "the network's weights are more than a link carries at once: the server evaluates");
  terms.crossings = crossings_of(graph, worker::activation_type(job));
  terms.pixels = static_cast<double>(terms.micro_batch * element_count(graph.input()));
  terms.probe = data::probe(train_root, terms.setup.probe);
  terms.setup.only_timed = device.is_gpu;
  if (device.emulation != nullptr) {
    terms.numerics = worker::kEmulatedNumerics;
    return terms;
  }
  if (device.is_gpu) {  // which computes differently anyhow: stems of any worker will do
    if (terms.setup.deepest_cut > 0) terms.numerics = "any";
    return terms;
  }
  terms.numerics =
      nn::cpu::measure_numerics(graph, terms.setup.deepest_cut, worker::micro_batch(job),
                                worker::precision(job), threads)
          .fingerprint;
  return terms;
}

}  // namespace outrigger::gpu_server
