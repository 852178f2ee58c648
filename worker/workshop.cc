#include "worker/workshop.h"

#include "common/error.h"
#include "common/log.h"
#include "common/memory.h"
#include "nn/cpu/blocks.h"
#include "nn/cpu/fingerprint.h"
#include "nn/cpu/instruction_set.h"
#include "worker/counters.h"
#include "worker/job.h"
#include "worker/work/file_pixels.h"

namespace outrigger::worker {
namespace {

/// Whether stems are the server's, bit for bit: with its instruction set, unless they need not be.
bool computes_as_the_server(const Setup& setup) {
  if (setup.only_timed) return true;
  try {
    nn::cpu::set_instruction_set(setup.instruction_set);
    return true;
  } catch (const InvalidInput& error) {
    log::warning("{}; this worker makes pixels only", error.what());
    return false;
  }
}

}  // namespace

Workshop::Workshop(const Setup& setup, const api::Launch& launch, ThreadPool& threads)
    : threads_(threads),
      job_(read_job(setup.job)),
      graph_(build_graph(job_, setup.classes)),
      pace_(launch.emulate_cores),
      times_(launch.emulate ? std::optional(read_emulated_times(*launch.emulate)) : std::nullopt),
      backend_(times_ ? make_emulated_cores(*times_, pace_) : cpu_backend(job_)),
      train_root_(api::data_path(job_, launch, job_.spec.data.train.path.value_or(""))),
      pixels_(make_pixels(launch)),
      agent_({.leases = feed::leases_in_hand(threads.size(), micro_batch(job_)),
              .asked_at_once = feed::kAskedAtOnce,
              .micro_batch = micro_batch(job_),
              .precision = precision(job_),
              .seed = seed(job_),
              .score_embeddings = scores_embeddings(job_),
              .stem_threads = stem_threads(job_, graph_),
              .alone = true},
             graph_, *backend_, threads, *pixels_) {}

std::unique_ptr<PixelSource> Workshop::make_pixels(const api::Launch& launch) {
  if (times_) return std::make_unique<EmulatedPixels>(*times_, pace_);
  const auto& validation = job_.spec.data.validation;
  return std::make_unique<FilePixels>(
      pipeline_options(job_), train_root_,
      validation ? api::data_path(job_, launch, validation->path.value_or("")) : "");
}

Hello Workshop::hello(const Setup& setup, std::atomic<uint64_t>& turns,
                      const std::stop_token& stop) const {
  Hello hello;
  hello.version = OUTRIGGER_VERSION;
  hello.cores = static_cast<uint32_t>(threads_.size());
  hello.memory = free_memory();
  try {
    const Turn turn(turns);
    hello.probe = data::probe(train_root_, setup.probe);
  } catch (const Error& error) {
    hello.problem = error.what();
  }
  if (times_) {
    hello.numerics = kEmulatedNumerics;
    hello.pass_seconds =
        static_cast<float>(times_->pass_seconds(setup.deepest_cut) / pace_.cores());
  } else if (computes_as_the_server(setup)) {
    time_stem(setup, stop, hello);
  }
  return hello;
}

void Workshop::time_stem(const Setup& setup, const std::stop_token& stop, Hello& hello) const {
  const int64_t whole = micro_batch(job_);
  const int blocks = stem_threads(job_, graph_);
  if (setup.deepest_cut > 0 && blocks < threads_.size())
    log::info("stems keep {} of {} threads at work with micro-batches of {}, the others decode",
              blocks, threads_.size(), whole);
  const int64_t samples =
      setup.only_timed ? nn::cpu::samples_to_time(graph_, whole, threads_.size()) : whole;
  const auto numerics = nn::cpu::measure_numerics(graph_, setup.deepest_cut, samples,
                                                  precision(job_), threads_, stop);
  hello.numerics = numerics.fingerprint;
  const double of_all = static_cast<double>(whole) / static_cast<double>(samples);
  hello.pass_seconds =
      static_cast<float>(nn::cpu::times_as_long(graph_, whole, samples, threads_.size()) *
                         numerics.seconds * Quota(threads_.size(), false).slowdown());
  hello.layers = numerics.layers;
  for (LayerSeconds& layer : hello.layers) {
    layer.forward *= static_cast<float>(of_all);
    layer.backward *= static_cast<float>(of_all);
  }
}

}  // namespace outrigger::worker
