#include "gpu-server/run.h"

#include <utility>

#include "common/log.h"
#include "gpu-server/job/job_data.h"
#include "gpu-server/job/job_options.h"
#include "gpu-server/links/introduction.h"
#include "worker/job.h"
#include "worker/work/file_pixels.h"

namespace outrigger::gpu_server {
namespace {

std::filesystem::path made(std::filesystem::path directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw IoError("making the folder " + directory.string() + ": " + error.message());
  return directory;
}

std::filesystem::path root_of(const api::TrainingJob& job, const api::Launch& launch,
                              const std::optional<api::DataSource>& source) {
  return source ? api::data_path(job, launch, source->path.value_or("")) : std::filesystem::path();
}

// Of millions of files on a network this takes minutes, in which no page answers yet.
data::Dataset list_train(const api::TrainingJob& job, const std::filesystem::path& root) {
  log::info("{}: listing {}", job.metadata.name, root.string());
  return list_data(job.spec.data.train, root, {});
}

// Of itself each rank computes with the best that its machine has; a resume imposes one set on all.
training::TrainingState state_in_common(RunFiles& files, Agreement& agreement) {
  training::TrainingState state = files.first_state();
  agreement.agree_on_instruction_set();
  return state;
}

std::unique_ptr<nn::Backend> local_backend(const api::TrainingJob& job, const OpenDevice& device) {
  if (device.emulation == nullptr) return worker::cpu_backend(job);
  return worker::make_emulated_cores(device.emulation->times, device.emulation->local);
}

std::unique_ptr<worker::PixelSource> pixels_of(const api::TrainingJob& job,
                                               const OpenDevice& device,
                                               const std::filesystem::path& train_root,
                                               const std::filesystem::path& validation_root) {
  if (device.emulation != nullptr)
    return std::make_unique<worker::EmulatedPixels>(device.emulation->times,
                                                    device.emulation->local);
  return std::make_unique<worker::FilePixels>(worker::pipeline_options(job), train_root,
                                              validation_root);
}

training::TrainerOptions options_on(const OpenDevice& device, training::TrainerOptions options,
                                    const nn::Graph& graph, ThreadPool& threads) {
  options.device.most_at_once = micro_batches_at_once(device, graph, options, threads);
  if (device.stands_alone())
    log::info("the GPU runs {} micro-batches of {} at once", options.device.most_at_once,
              options.device.micro_batch);
  return options;
}

api::EvaluationPlace place_of(const api::TrainingJob& job) {
  const auto& evaluate = job.spec.training.evaluate;
  return evaluate ? evaluate->place : api::EvaluationPlace::kServer;
}

bool stops_early(const api::TrainingJob& job) {
  const auto& evaluate = job.spec.training.evaluate;
  return evaluate && evaluate->stop_after_no_gain.has_value();
}

worker::WireContext context_of(const api::TrainingJob& job) {
  return {worker::activation_type(job), worker::seed(job)};
}

// Where the host has the loss, it also hands the device what came.
worker::WireContext context_of(const api::TrainingJob& job, const OpenDevice& device) {
  worker::WireContext context = context_of(job);
  const auto* arcface = std::get_if<api::ArcFace>(&job.spec.training.loss);
  const bool loss_on_host = arcface != nullptr && arcface->partial_fc.has_value();
  context.keep_int8 = device.backend->unpacks_int8() && !loss_on_host;
  return context;
}

feed::CoordinatorOptions coordinator_options(const api::TrainingJob& job, const RunSize& size,
                                             const training::TrainingState& state, int rank,
                                             std::stop_token evaluation_stop) {
  feed::CoordinatorOptions options;
  options.evaluation_stop = std::move(evaluation_stop);
  options.incarnation = static_cast<uint32_t>(state.incarnation);
  options.first_step = state.step;
  options.total_steps = size.total_steps;
  options.micro_batches = size.micro_batches;
  options.micro_batch = static_cast<uint32_t>(worker::micro_batch(job));
  options.first_micro_batch = static_cast<uint32_t>(rank) * size.micro_batches;
  options.all_micro_batches = size.micro_batches * static_cast<uint32_t>(api::rank_count(job.spec));
  options.staleness = static_cast<uint64_t>(job.spec.training.staleness);
  options.max_bad_fraction = job.spec.data.max_bad_fraction;
  options.known_broken = state.bad_samples;
  // Before the watchdog, which could not say what it was.
  options.unreadable_after =
      std::min<Duration>(options.unreadable_after, job.spec.progress_deadline / 2);
  return options;
}

}  // namespace

Run::Run(const api::Launch& launch, api::TrainingJob job, const std::stop_token& stop,
         std::unique_ptr<transport::Listener> listener, training::Reducer* reducer,
         OpenDevice device)
    : launch_(launch),
      job_(std::move(job)),
      edited_(job_),
      stop_(stop),
      reducer_(reducer),
      agreement_(reducer),
      directory_(made(api::run_directory(job_, launch_))),
      train_root_(root_of(job_, launch_, job_.spec.data.train)),
      validation_root_(root_of(job_, launch_, job_.spec.data.validation)),
      train_(list_train(job_, train_root_)),
      validation_(list_validation(job_, validation_root_, train_)),
      size_(run_size(job_, train_)),
      graph_(worker::build_graph(job_, static_cast<int64_t>(train_.classes().size()))),
      device_(std::move(device)),
      cpu_(local_backend(job_, device_)),
      threads_(launch_.threads.value_or(available_cores())),
      files_(job_, launch_, graph_, train_),
      state_(state_in_common(files_, agreement_)),
      broken_(train_, job_.spec.data.max_bad_fraction, state_.bad_samples),
      plan_(first_plan()),
      gpu_metrics_(watch(device_, metrics_)),
      trace_("server " + std::to_string(launch_.rank), clock_, {.process = launch_.rank}),
      traced_reducer_(reducer == nullptr ? nullptr
                                         : std::make_unique<TracedReducer>(*reducer, trace_)),
      reporter_(job_.metadata.name, directory_,
                {launch_.rank, api::rank_count(job_.spec), device_.emulation != nullptr}, size_,
                state_.step, state_.incarnation, metrics_, clock_),
      pixels_(pixels_of(job_, device_, train_root_, validation_root_)),
      feed_(feed::Coordinator(coordinator_options(job_, size_, state_, launch_.rank,
                                                  evaluation_stop_.get_token()),
                              feed::SampleOrder(order_options(job_, train_)), train_, plan_),
            join_terms(job_, graph_, train_, train_root_, state_.incarnation, threads_, device_),
            context_of(job_, device_), clock_, trace_),
      local_(
          {.leases = std::max({2u, size_.micro_batches,
                               feed::leases_in_hand(threads_.size(), worker::micro_batch(job_))}),
           .micro_batch = worker::micro_batch(job_),
           .precision = worker::precision(job_),
           .seed = worker::seed(job_),
           .stem_threads = worker::stem_threads(job_, graph_),
           .pixel_memory = device_.backend->input_memory(),
           .neighbour =
               device_is_cores() ? std::optional(ProcessorClock::of_this_thread()) : std::nullopt},
          graph_, *cpu_, threads_.size(), *pixels_, context_of(job_), metrics_,
          [this](std::exception_ptr failure) { feed_.fail_local(std::move(failure)); }),
      trainer_(options_on(device_, trainer_options(job_, graph_, size_, device_.precision), graph_,
                          threads_),
               graph_, *device_.backend, threads_, feed_, clock_, std::move(state_),
               traced_reducer_.get()),
      evaluator_(graph_, *device_.backend, threads_,
                 {.batch = worker::micro_batch(job_),
                  .precision = device_.precision,
                  .embeddings = worker::scores_embeddings(job_)}),
      evaluation_placement_(place_of(job_), stops_early(job_)),
      listener_(std::move(listener)) {
  if (device_.is_gpu)
    gpu_phases_.emplace(
        metrics_, [this] { return nn::cuda::memory_uses(*device_.backend); },
        [this] { return nn::cuda::kept_by_layers(*device_.backend); });
  if (device_is_cores())
    shared_cores_.emplace(ProcessorClock::of_this_thread(), local_.processor_clock(), feed_);
  plan_from_now_on();
}

Run::~Run() {
  on_stop_.reset();
  pages_.reset();
  acceptor_ = {};
  watchdog_.reset();
}

api::ExitCode Run::train() {
  try {
    const api::ExitCode code = translate_device_errors([this] { return begin_and_train(); });
    reporter_.end(code);
    return code;
  } catch (const std::exception& error) {
    reporter_.finish();
    const api::ExitCode code = api::exit_code_of(error);
    // A later attempt's lines are in those files by now, and it has not ended.
    if (code == api::ExitCode::kStaleAttempt) throw;
    reporter_.end(code, error.what());
    write_trace();
    throw;
  }
}

api::ExitCode Run::begin_and_train() {
  if (first_rank()) check_lists(job_, train_, validation_);
  files_.write_job();
  watchdog_ = make_watchdog();
  open_doors();
  log::info(
      "{}: {} images of {} classes, {} steps of {} in {} micro-batches, {} parameters, {:.1f} M "
      "multiply-adds an image",
      job_.metadata.name, train_.size(), train_.classes().size(), size_.total_steps, size_.batch,
      size_.micro_batches, graph_.parameter_count(),
      static_cast<double>(graph_.multiply_adds(graph_.whole())) / 1e6);
  reporter_.plan(plan_, trainer_.counters().step,
                 wants_planner(job_) ? "to measure" : "as the job says");
  advise(plan_);
  try {
    train_to_the_end();
  } catch (const Cancelled&) {
    return stopped();
  } catch (const training::NumericalError& error) {
    throw api::Failure(api::ExitCode::kNumericalError,
                       std::string(error.what()) + "; the last good checkpoint is of step " +
                           (files_.saved_step() ? std::to_string(*files_.saved_step()) : "none"));
  } catch (const InvalidInput& error) {
    throw api::Failure(api::ExitCode::kBadData, error.what());
  }
  return complete();
}

void Run::train_to_the_end() {
  const uint64_t begun_at = trainer_.counters().step;
  agreement_.check_start({begun_at, size_.total_steps, train_.size(), files_.data()});
  if (begun_at > size_.total_steps)
    log::warning(
        "the run is at step {} already, past the {} that the job asks for: there is nothing "
        "left to train",
        begun_at, size_.total_steps);
  resume_evaluation_beside();
  {
    const auto waiting = keep_others_waiting();
    evaluate_if_due();  // the run before was stopped in the middle of it
  }
  while (trainer_.counters().step < size_.total_steps) {
    if (trainer_.synchronized()) {
      const Wishes wishes = settle();
      if (wishes.stop_early) {
        log::info("no gain for a while: stopping early, as asked");
        return;
      }
      if (wishes.stop) throw Cancelled("the run was asked to stop");
    }
    if (shared_cores_) shared_cores_->begin_step();
    after_step(trainer_.step());
    if (!trainer_.synchronized()) continue;
    const uint64_t step = trainer_.counters().step;
    if (state_is_wanted(step)) trainer_.gather_state();
    const auto waiting = keep_others_waiting();
    evaluate_if_due();
    if (files_.checkpoint_due(step) && step < size_.total_steps) save_checkpoint();
  }
}

void Run::after_step(const training::StepReport& told) {
  ready_ = true;
  evaluation_loss_.step(to_seconds(told.took), trainer_.counters().evaluating != nullptr);
  feed::StallTimes stalls = feed_.take_stalls();
  std::optional<training::StepReport> held;
  if (gpu_phases_) gpu_phases_->step(told);
  if (told.device) {
    stalls = hold_to(stalls, stood_still(told));
    held = as_the_device_waited(told);
  }
  const training::StepReport& report = held ? *held : told;
  auto [workers, local] = feed_.measures();
  measured_ = {.busy = shared_cores_ ? shared_cores_->busy_alone(report) : busy_seconds(report),
               .plan = report.plan.number,
               .memory = device_.emulation ? 0 : static_cast<double>(free_memory_),
               .threads = static_cast<uint32_t>(threads_.size()),
               .workers = std::move(workers),
               .local = std::move(local)};
  const TimePoint compared = clock_.now();
  plan_ahead(report, measured_);
  const Duration planning = clock_.now() - compared;
  const FeedSnapshot snapshot = feed_.snapshot();
  warn_of_stems(report.plan, snapshot);
  reporter_.step(report, snapshot, stalls, planning);
  tell_of_workers(report, measured_);
  const auto replacements = feed_.replacements();
  for (; replacements_told_ < replacements.size(); ++replacements_told_) {
    const auto& one = replacements[replacements_told_];
    reporter_.replacement(one);
    log::warning("slot {}: {} is broken ({}), replaced by sample {}", one.slot, one.path,
                 one.reason, one.by);
  }
}

void Run::take_over_broken_samples() {
  trainer_.counters().bad_samples = broken_.with(feed_.broken_samples());
}

void Run::save_checkpoint() {
  const TimePoint start = clock_.now();
  const auto span = trace_.span("checkpoint", 0, static_cast<int64_t>(trainer_.counters().step));
  take_over_broken_samples();
  trainer_.counters().plan = found_plan();
  if (!files_.save(trainer_.state())) return;
  reporter_.checkpoint(*files_.saved_step(), files_.saved_path(), clock_.now() - start);
}

}  // namespace outrigger::gpu_server
