#include "gpu-server/report/reporter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/log.h"
#include "gpu-server/report/instruments.h"
#include "gpu-server/report/report_json.h"

namespace outrigger::gpu_server {
namespace {

using nlohmann::json;

std::string describe(const feed::Plan& plan, uint32_t micro_batches) {
  std::string text = "cut Input";
  if (plan.cut > 0)
    text = fmt::format("cut {}, share {}%", plan.cut_name, 100 * plan.stems_away / micro_batches);
  if (plan.local_inputs > 0)
    text += fmt::format(", {}% of the input local", plan.local_percent(micro_batches));
  return text;
}

/// What the device waits for most, the end of the step left out: workers cannot help that.
std::string worst_cause(const feed::StallTimes& times) {
  const auto inputs = std::span(times).first(feed::kInputCauses);
  const auto worst = std::ranges::max_element(inputs);
  return feed::to_string(static_cast<feed::StallCause>(worst - inputs.begin()));
}

std::string file_name(const char* what, int rank) {
  return rank == 0 ? std::string(what) + ".jsonl"
                   : std::string(what) + "-" + std::to_string(rank) + ".jsonl";
}

}  // namespace

Reporter::Reporter(std::string job, const std::filesystem::path& directory, ReportingRank place,
                   RunSize size, uint64_t first_step, uint64_t incarnation,
                   telemetry::Metrics& metrics, const Clock& clock)
    : job_(std::move(job)),
      clock_(clock),
      size_(size),
      ranks_(place.ranks),
      emulated_(place.emulated),
      incarnation_(incarnation),
      metrics_file_(directory / file_name("metrics", place.rank)),
      audit_file_(directory / file_name("audit", place.rank)),
      instruments_(std::make_unique<Instruments>(metrics)),
      line_(clock),
      time_left_(size, first_step),
      stands_since_(clock.now()) {
  progress_.step = first_step;
  progress_.total_steps = size.total_steps;
  progress_.epoch = size.epochs_of(first_step);
  progress_.epochs = size.epochs_of(size.total_steps);
  shown_ = progress_;
}

Reporter::~Reporter() = default;

void Reporter::count_stalls(const feed::StallTimes& stalls) {
  const std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < feed::kStallCauses; ++i) {
    instruments_->stalls[i]->add(stalls[i]);
    stalled_[i] += stalls[i];
  }
}

void Reporter::step(const training::StepReport& report, const FeedSnapshot& feed,
                    const feed::StallTimes& waits, Duration planning) {
  feed::StallTimes stalls = waits;
  const double end = to_seconds(report.optimizer);
  const double ranks = std::min(end, to_seconds(report.waited_for_ranks));
  feed::of(stalls, feed::StallCause::kOptimizer) = end - ranks;
  feed::of(stalls, feed::StallCause::kRanks) = ranks;
  // The first steps compile and warm up; the averages forget them.
  const double keep =
      std::min(0.9, static_cast<double>(steps_here_) / static_cast<double>(steps_here_ + 2));
  ++steps_here_;
  const auto smooth = [&](double& value, double now) { value = keep * value + (1 - keep) * now; };
  const double took = to_seconds(report.took);
  const double stall =
      to_seconds(report.waited_for_input + report.waited_for_gradients) / std::max(took, 1e-9);
  smooth(smooth_step_seconds_, took);
  smooth(smooth_loss_, report.loss);
  smooth(smooth_accuracy_, report.accuracy);
  smooth(smooth_stall_, stall);
  progress_.step = report.step + 1;
  progress_.epoch = size_.epochs_of(report.step + 1);
  progress_.images_per_second = size_.batch / smooth_step_seconds_;
  progress_.loss = smooth_loss_;
  progress_.accuracy = smooth_accuracy_;
  progress_.stall_percent = 100 * smooth_stall_;
  for (size_t i = 0; i < feed::kStallCauses; ++i) smooth(smooth_stalls_[i], stalls[i]);
  progress_.stall_cause = worst_cause(smooth_stalls_);
  if (smooth_stall_ < 0.005) progress_.stall_cause.clear();
  progress_.plan = describe(report.plan, size_.micro_batches);
  time_left_.step(report.step + 1, smooth_step_seconds_);
  progress_.time_left = time_left_.now();
  line_.show(progress_);

  instruments_->steps.add();
  instruments_->samples.add(static_cast<double>(size_.batch) / ranks_);
  count_stalls(stalls);
  instruments_->busy.add(took);
  instruments_->planning.add(to_seconds(planning));
  instruments_->loss.set(report.loss);
  instruments_->accuracy.set(report.accuracy);
  instruments_->workers.set(static_cast<double>(feed.workers));
  instruments_->links(feed_, feed);  // only this thread sets it
  instruments_->rate.set(*progress_.images_per_second / ranks_);
  write_metrics(report, stalls, {.workers = feed.workers, .stall = stall, .planning = planning});
  write_audit(report);
  stands_since_ = clock_.now();
  const std::scoped_lock lock(mutex_);
  shown_ = progress_;
  feed_ = feed;
  state_ = "Training";
}

void Reporter::profile(const training::JobCosts& costs) {
  json layers = json::array();
  for (const training::LayerCosts& one : costs.layers) layers.push_back(to_json(one));
  metrics_file_.append(text_of({{"type", "profile"}, {"layers", layers}}));
}

void Reporter::layers(uint64_t step, const nn::Graph& graph, std::span<const LayerSeconds> server,
                      std::span<const WorkerMeasures> workers) {
  json names = json::array();
  for (const nn::Layer& layer : graph.layers()) names.push_back(layer.name);
  json list = json::array();
  for (const WorkerMeasures& one : workers) {
    if (!one.layers.empty())
      list.push_back({{"name", one.name}, {"layers", to_json(std::span(one.layers))}});
  }
  if (server.empty() && list.empty()) return;
  metrics_file_.append(text_of({{"type", "layers"},
                                {"step", step},
                                {"names", names},
                                {"server", to_json(server)},
                                {"workers", list}}));
}

void Reporter::workers(uint64_t step, std::span<const WorkerMeasures> workers,
                       const WorkerMeasures& local) {
  json list = json::array();
  for (const WorkerMeasures& one : workers) list.push_back(to_json(one));
  json line{{"type", "workers"}, {"step", step}, {"workers", list}, {"local", to_json(local)}};
  if (desired_workers_) line["desired"] = *desired_workers_;  // only this thread sets it
  metrics_file_.append(text_of(line));
}

void Reporter::desired_workers(std::optional<uint32_t> count) {
  instruments_->desired_workers(count);
  const std::scoped_lock lock(mutex_);
  desired_workers_ = count;
}

void Reporter::write_metrics(const training::StepReport& report, const feed::StallTimes& stalls,
                             const StepNotes& notes) {
  const double took = to_seconds(report.took);
  metrics_file_.append(text_of({{"type", "step"},
                                {"step", report.step},
                                {"loss", report.loss},
                                {"accuracy", report.accuracy},
                                {"learningRate", report.learning_rate},
                                {"gradientNorm", report.gradient_norm},
                                {"samplesPerSecond", size_.batch / took},
                                {"stallPercent", 100 * notes.stall},
                                {"waitedForInput", to_seconds(report.waited_for_input)},
                                {"waitedForGradients", to_seconds(report.waited_for_gradients)},
                                {"seconds", took},
                                {"stall", to_json(stalls)},
                                {"planningSeconds", to_seconds(notes.planning)},
                                {"workers", notes.workers},
                                {"plan", report.plan.number}}));
}

void Reporter::write_audit(const training::StepReport& report) {
  json pixels = json::array();
  json samples = json::array();
  for (const feed::AuditItem& item : report.audit) {
    pixels.push_back(fmt::format("{:016x}", item.pixel_hash));
    samples.push_back(item.samples);
  }
  audit_file_.append(
      text_of({{"incarnation", incarnation_},
               {"step", report.step},
               {"firstSlot", report.audit.empty() ? 0 : report.audit.front().first_slot},
               {"samples", samples},
               {"pixels", pixels}}));
}

void Reporter::replacement(const feed::Replacement& one) {
  audit_file_.append(text_of({{"incarnation", incarnation_},
                              {"replacedSlot", one.slot},
                              {"broken", one.broken},
                              {"by", one.by},
                              {"path", one.path},
                              {"reason", one.reason}}));
}

void Reporter::show_plan(const feed::Plan& plan) {
  if (plan_.number > 0) instruments_->plan(plan_, size_.micro_batches).withdraw();
  instruments_->plan(plan, size_.micro_batches).set(1);
  instruments_->work.set(plan.server_percent(size_.micro_batches) / 100);
}

void Reporter::plan(const feed::Plan& plan, uint64_t step, const std::string& reason) {
  json line = to_json(plan, size_.micro_batches);
  line["type"] = "plan";
  line["incarnation"] = incarnation_;
  line["step"] = step;
  line["reason"] = reason;
  if (emulated_) line["emulated"] = true;
  metrics_file_.append(text_of(line));
  show_plan(plan);
  const std::scoped_lock lock(mutex_);
  plan_ = plan;
  plan_reason_ = reason;
}

void Reporter::finish() {
  if (progress_.step > progress_.total_steps) return;
  if (progress_.step == progress_.total_steps) progress_.time_left.reset();
  if (!std::exchange(finished_, true)) line_.finish(progress_);
}

void Reporter::end(api::ExitCode code, const std::string& message) {
  json line{{"type", "end"},
            {"state", api::info(code).name},
            {"step", progress_.step},
            {"totalSteps", size_.total_steps}};
  if (!message.empty()) line["message"] = message;
  metrics_file_.append(text_of(line));
}

void Reporter::state(const std::string& state) {
  const std::scoped_lock lock(mutex_);
  state_ = state;
}

void Reporter::edits(const Edits& edits) {
  const std::scoped_lock lock(mutex_);
  edits_ = edits;
}

}  // namespace outrigger::gpu_server
