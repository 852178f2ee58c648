#include "cli/measured_job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/link_work.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/memory.h"
#include "common/thread_pool.h"
#include "gpu-server/device/device.h"
#include "gpu-server/job/job_data.h"
#include "gpu-server/job/job_options.h"
#include "gpu-server/job/job_plan.h"
#include "gpu-server/planning/job_costs.h"
#include "gpu-server/planning/memory_check.h"
#include "gpu-server/planning/planning.h"
#include "worker/job.h"
#include "worker/work/decoder.h"
#include "worker/work/decoding.h"
#include "worker/work/file_pixels.h"

namespace outrigger::cli {
namespace {

/// Some of the images, spread over the data set.
feed::Lease some_images(const data::Dataset& train) {
  constexpr uint32_t kImages = 64;
  const uint32_t count = std::min(kImages, train.size());
  feed::Lease lease;
  for (uint32_t i = 0; i < count; ++i) {
    const auto id = static_cast<uint32_t>(uint64_t{i} * train.size() / count);
    lease.samples.push_back({.slot = i, .id = id, .sample = train.at(id)});
  }
  return lease;
}

/// Core-seconds that reading, decoding and augmenting a micro-batch take a worker here.
double measure_decoding(const api::TrainingJob& job, const std::filesystem::path& root,
                        const data::Dataset& train) {
  const data::PipelineOptions options = worker::pipeline_options(job);
  worker::FilePixels source(options, root, "");
  const auto lease = std::make_shared<const feed::Lease>(some_images(train));
  ThreadPool one(1);
  worker::Decoder decoder(one, source, {});
  const TimePoint begin = system_now();
  const auto decoding = std::make_shared<worker::Decoding>(
      lease, Shape{options.height, options.width, options.channels}, nullptr);
  decoder.add({}, decoding);
  while (decoder.make_one()) continue;
  const double took = to_seconds(system_now() - begin);
  decoding->rethrow();
  if (decoding->read_error()) throw IoError(*decoding->read_error());
  // A broken image says nothing about speed, and takes little time.
  const size_t decoded = lease->samples.size() - decoding->take_broken().size();
  if (decoded == 0) throw InvalidInput(root.string() + ": none of the images tried can be decoded");
  return took / static_cast<double>(decoded) * static_cast<double>(worker::micro_batch(job));
}

void measure_links(const api::TrainingJob& job, MeasuredJob& measured) {
  feed::Plan plan;
  gpu_server::set_wires(plan, job);
  measured.wires = {plan.activations, plan.gradients};
  LinkMeter meter(worker::activation_type(job));
  measured.profile.costs.link_work = meter.work(measured.wires);
  for (const WireFormat format : kNarrowWires) {
    const Wires wires = narrowed(measured.wires, format);
    if (wires != measured.wires) measured.narrowed_work.emplace(format, meter.work(wires));
  }
}

gpu_server::PlannedDevice measure_device(const api::TrainingJob& job, const api::Launch& launch,
                                         const nn::Graph& graph, const gpu_server::RunSize& size,
                                         ThreadPool& threads) {
  const gpu_server::OpenDevice device = gpu_server::open_device(launch, job);
  if (!device.is_gpu) {
    gpu_server::check_memory_to_measure(job, graph, size, static_cast<double>(free_memory()),
                                        threads);
    return gpu_server::measured_device(job, graph, size, threads);
  }
  training::TrainerOptions options =
      gpu_server::trainer_options(job, graph, size, device.precision);
  options.device.most_at_once = gpu_server::micro_batches_at_once(device, graph, options, threads);
  return gpu_server::measured_gpu(*device.backend, options.device, job, graph, size, threads);
}

}  // namespace

MeasuredJob measure_job(const api::TrainingJob& job, const api::Launch& launch, int threads) {
  api::check_mounts(job, launch.mounts);
  const auto root = api::data_path(job, launch, job.spec.data.train.path.value_or(""));
  const data::Dataset train = gpu_server::list_data(job.spec.data.train, root, {});
  const gpu_server::RunSize size = gpu_server::run_size(job, train);
  nn::Graph graph = worker::build_graph(job, static_cast<int64_t>(train.classes().size()));
  static_cast<void>(gpu_server::make_plan(job, graph, size, 1));  // whether `run` would take it
  ThreadPool pool(threads);
  const gpu_server::PlannedDevice device = measure_device(job, launch, graph, size, pool);
  MeasuredJob measured{.cores = device.cores, .shared = device.shared};
  training::Profile& profile = measured.profile;
  profile.samples = size.samples;
  profile.batch = size.batch;
  profile.micro_batch = static_cast<uint32_t>(worker::micro_batch(job));
  profile.costs = device.costs;
  profile.block_samples = device.block_samples;
  profile.options = gpu_server::planner_options(job, graph, size, profile.costs);
  profile.decode = measure_decoding(job, root, train);
  measure_links(job, measured);
  if (auto advice = gpu_server::share_advice(job, size))
    measured.remarks.push_back(std::move(*advice));
  measured.graph = std::move(graph);
  return measured;
}

}  // namespace outrigger::cli
