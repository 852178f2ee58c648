#include "gpu-server/run.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "api/names.h"
#include "api/write.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"
#include "gpu-server/doors.h"
#include "gpu-server/tokens.h"
#include "nn/cpu/backend.h"
#include "nn/cpu/fingerprint.h"
#include "nn/cpu/instruction_set.h"
#include "nn/models.h"
#include "nn/weights_file.h"
#include "training/model_card.h"
#include "worker/job.h"

namespace outrigger::gpu_server {
namespace {

constexpr const char* kInstructionSetKey = "instructionSet";

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

data::Dataset list_validation(const api::TrainingJob& job, const std::filesystem::path& root,
                              const data::Dataset& train) {
  if (!job.spec.data.validation) return {};
  return list_data(*job.spec.data.validation, root, train.classes());
}

feed::SampleOrder order_of(const api::TrainingJob& job, const data::Dataset& train,
                           const training::TrainingState& state) {
  feed::SampleOrder order(order_options(job, train));
  for (const uint32_t sample : state.bad_samples) order.mark_broken(sample);
  return order;
}

worker::WireContext context_of(const api::TrainingJob& job) {
  return {worker::activation_type(job), worker::seed(job)};
}

}  // namespace

Run::Run(const api::Launch& launch, api::TrainingJob job, const std::stop_token& stop,
         std::unique_ptr<transport::Listener> listener, training::Reducer* reducer)
    : launch_(launch),
      job_(std::move(job)),
      stop_(stop),
      reducer_(reducer),
      directory_(made(api::run_directory(job_, launch_))),
      train_root_(root_of(job_, launch_, job_.spec.data.train)),
      validation_root_(root_of(job_, launch_, job_.spec.data.validation)),
      train_(list_data(job_.spec.data.train, train_root_, {})),
      validation_(list_validation(job_, validation_root_, train_)),
      size_(run_size(job_, train_)),
      graph_(worker::build_graph(job_, static_cast<int64_t>(train_.classes().size()))),
      backend_(nn::cpu::make_cpu_backend()),
      threads_(launch_.threads.value_or(available_cores())),
      state_(first_state()),
      reporter_(job_.metadata.name, directory_, launch_.rank, size_, state_.step,
                state_.incarnation, metrics_, clock_),
      pixels_(worker::pipeline_options(job_), train_root_, validation_root_),
      feed_(feed::Coordinator(coordinator_options(), order_of(job_, train_, state_), train_,
                              first_plan(job_, graph_, size_)),
            join_terms(), context_of(job_), clock_),
      local_({.leases = std::max(2u, size_.micro_batches),
              .micro_batch = worker::micro_batch(job_),
              .precision = worker::precision(job_),
              .seed = worker::seed(job_)},
             graph_, *backend_, threads_.size(), pixels_, context_of(job_), metrics_),
      trainer_(trainer_options(job_, size_), graph_, *backend_, threads_, feed_, clock_, state_,
               reducer),
      evaluator_(graph_, *backend_, threads_, worker::precision(job_), worker::micro_batch(job_)),
      listener_(std::move(listener)) {}

Run::~Run() {
  on_stop_.reset();
  pages_.reset();
  acceptor_ = {};
}

// ---- what the run starts from

training::TrainingState Run::first_state() {
  const auto checkpoints = api::checkpoint_directory(job_, launch_);
  if (first_rank())
    store_.emplace(checkpoints,
                   training::CheckpointOptions{job_.spec.checkpoint.keep, launch_.attempt});
  auto found = training::load_newest_checkpoint(checkpoints, graph_);
  if (found && launch_.resume) {
    const auto recorded = found->metadata.find(kInstructionSetKey);
    if (recorded != found->metadata.end() && nn::cpu::has_instruction_set(recorded->second)) {
      nn::cpu::set_instruction_set(recorded->second);
    } else if (recorded != found->metadata.end()) {
      log::warning(
          "the run was computed with {}, which this machine lacks; results will differ in the last "
          "bits",
          recorded->second);
    }
    ++found->state.incarnation;
    saved_step_ = found->state.step;
    log::info("resuming from {} at step {}", found->path.string(), found->state.step);
    return std::move(found->state);
  }
  if (found && first_rank()) {
    throw InvalidInput(
        found->path.string() +
        " is a checkpoint of a former run: give --resume to go on from it, or remove " +
        checkpoints.string());
  }
  training::TrainingState state;
  state.incarnation = 1;
  state.parameters.resize(static_cast<size_t>(graph_.parameter_count()));
  state.momentum.resize(state.parameters.size());
  state.buffers.resize(static_cast<size_t>(graph_.buffer_count()));
  nn::initialize(graph_, worker::seed(job_), state.parameters, state.buffers);
  if (job_.spec.model.weights) {
    const auto path = api::data_path(job_, launch_, *job_.spec.model.weights);
    nn::load_weights(path, graph_, {job_.spec.model.replace_head}, state.parameters, state.buffers);
    log::info("weights from {}", path.string());
  }
  if (job_.spec.training.average_weights) state.averaged = state.parameters;
  return state;
}

feed::CoordinatorOptions Run::coordinator_options() const {
  feed::CoordinatorOptions options;
  options.incarnation = static_cast<uint32_t>(state_.incarnation);
  options.first_step = state_.step;
  options.total_steps = size_.total_steps;
  options.micro_batches = size_.micro_batches;
  options.micro_batch = static_cast<uint32_t>(worker::micro_batch(job_));
  options.first_micro_batch = static_cast<uint32_t>(launch_.rank) * size_.micro_batches;
  options.all_micro_batches =
      size_.micro_batches * static_cast<uint32_t>(api::rank_count(job_.spec));
  options.staleness = static_cast<uint64_t>(job_.spec.training.staleness);
  options.max_bad_fraction = job_.spec.data.max_bad_fraction;
  return options;
}

JoinTerms Run::join_terms() {
  JoinTerms terms;
  api::TrainingJob told = job_;
  told.spec.server.pod_template.reset();
  told.spec.workers.pod_template.reset();
  terms.setup.job = api::to_json_text(told);
  terms.setup.classes = static_cast<uint32_t>(train_.classes().size());
  terms.setup.incarnation = static_cast<uint32_t>(state_.incarnation);
  terms.setup.deepest_cut = deepest_cut(job_, graph_);
  terms.setup.instruction_set = nn::cpu::instruction_set();
  terms.setup.probe = data::choose_probe(train_, worker::seed(job_));
  terms.probe = data::probe(train_root_, terms.setup.probe);
  terms.numerics =
      nn::cpu::numerics_fingerprint(graph_, terms.setup.deepest_cut, worker::micro_batch(job_),
                                    worker::precision(job_), threads_);
  return terms;
}

// ---- doors

void Run::open_doors() {
  feed_.serve_local(local_.take_server_end());
  acceptor_ = std::jthread([this](const std::stop_token& over) { accept_workers(over); });
  telemetry::StatusServerOptions options;
  options.http.address = launch_.listen;
  options.http.port = launch_.status_port;
  options.control_token = control_token(launch_);
  telemetry::StatusSource source;
  source.not_ready = [this] {
    return ready_ ? std::vector<std::string>{} : std::vector<std::string>{"no step is done yet"};
  };
  source.status_json = [this] { return reporter_.status_json(); };
  const auto want_stop = [this] {
    stop_wanted_ = true;
    if (reducer_ == nullptr) feed_.cancel();  // replicas finish the step and stop together
  };
  source.stop = want_stop;
  pages_ = std::make_unique<telemetry::StatusServer>(options, metrics_, source);
  write_endpoints(launch_, job_, listener_->port(), pages_->port());
  log::info("workers join at port {}; status at port {}", listener_->port(), pages_->port());
  on_stop_ = std::make_unique<std::stop_callback<std::function<void()>>>(stop_, want_stop);
}

bool Run::agree(bool wish) {
  if (reducer_ == nullptr) return wish;
  float votes[1] = {wish ? 1.0f : 0.0f};
  reducer_->all_reduce(votes);
  return votes[0] > 0;
}

/// Ranks that started from different checkpoints would silently train different models.
void Run::check_ranks_agree() {
  if (reducer_ == nullptr) return;
  const auto step = static_cast<float>(state_.step);
  float sums[2] = {step, step * step};
  reducer_->all_reduce(sums);
  const auto ranks = static_cast<float>(reducer_->replicas());
  if (sums[0] != ranks * step || sums[1] != ranks * step * step) {
    throw IoError("the replicas start from different steps, this one from " +
                  std::to_string(state_.step) + ": do they see the same checkpoints?");
  }
}

void Run::accept_workers(const std::stop_token& over) {
  while (!over.stop_requested()) {
    try {
      if (auto link = listener_->accept(std::chrono::milliseconds(200)))
        feed_.serve(std::move(link));
      feed_.reap();
    } catch (const Cancelled&) {
      return;
    } catch (const Error& error) {
      log::warning("a worker could not be taken in: {}", error.what());
    }
  }
}

// ---- training

api::ExitCode Run::train() {
  if (first_rank()) write_file_atomically(directory_ / api::kJobFileName, api::to_yaml(job_));
  open_doors();
  log::info(
      "{}: {} images of {} classes, {} steps of {} in {} micro-batches, {} parameters, {:.1f} M "
      "multiply-adds an image",
      job_.metadata.name, train_.size(), train_.classes().size(), size_.total_steps, size_.batch,
      size_.micro_batches, graph_.parameter_count(),
      static_cast<double>(graph_.multiply_adds(graph_.whole())) / 1e6);
  reporter_.plan(first_plan(job_, graph_, size_), trainer_.state().step);
  try {
    check_ranks_agree();
    while (trainer_.state().step < size_.total_steps) {
      if (agree(stop_early_)) break;
      if (agree(stop_wanted_)) throw Cancelled("the run was asked to stop");
      after_step(trainer_.step());
      const uint64_t step = trainer_.state().step;
      if (due_for_evaluation(step)) stop_early_ = evaluate();
      if (due_for_checkpoint(step) && step < size_.total_steps) save_checkpoint();
    }
    if (stop_early_) log::info("no gain for a while: stopping early, as asked");
  } catch (const Cancelled&) {
    reporter_.state("Stopping");
    save_checkpoint();
    reporter_.finish();
    log::info("stopped after step {}; go on with --resume", trainer_.state().step);
    feed_.say_farewell({true, "the server was asked to stop"});
    return api::ExitCode::kStopped;
  } catch (const training::NumericalError& error) {
    reporter_.finish();
    throw api::Failure(api::ExitCode::kNumericalError,
                       std::string(error.what()) + "; the last good checkpoint is of step " +
                           (saved_step_ ? std::to_string(*saved_step_) : "none"));
  } catch (const InvalidInput& error) {
    reporter_.finish();
    throw api::Failure(api::ExitCode::kBadData, error.what());
  }
  reporter_.finish();
  save_checkpoint();
  if (first_rank()) write_weights();
  reporter_.state("Complete");
  feed_.say_farewell({false, "the job is done"});
  return api::ExitCode::kDone;
}

void Run::after_step(const training::StepReport& report) {
  ready_ = true;
  reporter_.step(report, feed_.snapshot());
  const auto replacements = feed_.replacements();
  for (; replacements_told_ < replacements.size(); ++replacements_told_) {
    const auto& one = replacements[replacements_told_];
    reporter_.replacement(one);
    log::warning("slot {}: {} is broken ({}), replaced by sample {}", one.slot, one.path,
                 one.reason, one.by);
  }
}

bool Run::due_for_evaluation(uint64_t step) const {
  if (!job_.spec.training.evaluate || validation_.size() == 0 || !first_rank()) return false;
  if (step == size_.total_steps) return true;
  const auto every = job_.spec.training.evaluate->every_steps;
  if (every) return step % static_cast<uint64_t>(*every) == 0;
  return std::floor(size_.epochs_of(step)) > std::floor(size_.epochs_of(step - 1));
}

bool Run::due_for_checkpoint(uint64_t step) const {
  return first_rank() && step % static_cast<uint64_t>(job_.spec.checkpoint.every_steps) == 0;
}

bool Run::evaluate() {
  const api::EvaluateSpec& spec = *job_.spec.training.evaluate;
  const TimePoint start = clock_.now();
  training::TrainingState& state = trainer_.state();
  const auto& parameters = state.averaged.empty() ? state.parameters : state.averaged;
  const auto result = evaluator_.run(feed_, validation_, parameters, state.buffers,
                                     spec.metric != api::EvaluationMetric::kAccuracy);
  reporter_.evaluation(state.step, result, clock_.now() - start);
  double metric = result.accuracy;
  if (spec.metric == api::EvaluationMetric::kVerification) metric = result.verification.value_or(0);
  if (spec.metric == api::EvaluationMetric::kIdentification)
    metric = result.identification.value_or(0);
  if (state.best_step < 0 || metric > state.best_metric) {
    state.best_metric = metric;
    state.best_step = static_cast<int64_t>(state.step);
    state.evaluations_without_gain = 0;
    take_over_broken_samples();
    if (spec.keep_best) store_->save_best(state, graph_, metadata());
    return false;
  }
  ++state.evaluations_without_gain;
  return spec.stop_after_no_gain && state.evaluations_without_gain >= *spec.stop_after_no_gain;
}

void Run::take_over_broken_samples() { trainer_.state().bad_samples = feed_.broken_samples(); }

void Run::save_checkpoint() {
  if (!first_rank() || saved_step_ == trainer_.state().step) return;
  const TimePoint start = clock_.now();
  take_over_broken_samples();
  store_->save(trainer_.state(), graph_, metadata());
  saved_step_ = trainer_.state().step;
  reporter_.checkpoint(*saved_step_, store_->step_path(*saved_step_), clock_.now() - start);
}

training::CheckpointMetadata Run::metadata() const {
  auto metadata = training::to_metadata(model_card(job_, train_.classes()), graph_);
  metadata[kInstructionSetKey] = nn::cpu::instruction_set();
  return metadata;
}

void Run::write_weights() const {
  const training::TrainingState& state = trainer_.state();
  const auto path = directory_ / "weights.safetensors";
  const auto beside = directory_ / ".weights.safetensors.tmp";
  nn::save_weights(beside, graph_, graph_.whole(),
                   {state.averaged.empty() ? state.parameters : state.averaged, state.buffers,
                    static_cast<int64_t>(state.step * size_.micro_batches)},
                   metadata());
  std::filesystem::rename(beside, path);
  log::info("weights: {}", path.string());
}

}  // namespace outrigger::gpu_server
