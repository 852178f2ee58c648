#include "cli/report/history_lines.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace outrigger::cli {
namespace {

using nlohmann::json;
using Step = RunHistory::Step;

/// What is null counts as absent: JSON has no other way to write what is not a number.
template <typename T>
std::optional<T> if_any(const json& line, const char* field) {
  const auto found = line.find(field);
  if (found == line.end() || found->is_null()) return std::nullopt;
  return std::optional<T>(std::in_place, found->get<T>());
}

double number(const json& line, const char* field) {
  return if_any<double>(line, field).value_or(0);
}
uint64_t count(const json& line, const char* field) {
  return if_any<uint64_t>(line, field).value_or(0);
}
std::string text(const json& line, const char* field) {
  return if_any<std::string>(line, field).value_or("");
}
json list(const json& line, const char* field) {
  const auto found = line.find(field);
  return found != line.end() && found->is_array() ? *found : json::array();
}

/// They are in order.
template <typename Told>
void drop_from(uint64_t step, std::vector<Told>& told) {
  while (!told.empty() && told.back().step >= step) told.pop_back();
}

/// A resumed run does some steps again, the first being `step`. The checkpoint that it goes on from
/// stays, and what was evaluated before that step: a checkpoint is written behind the evaluation
/// that is due with it.
void resumed_at(uint64_t step, RunHistory& history) {
  drop_from(step, history.steps);
  // Of some as one the first ones stay; fewer than steps_in_one are in it that are done again.
  if (!history.steps.empty())
    history.steps.back().last_step = std::min(history.steps.back().last_step, step - 1);
  drop_from(step + 1, history.evaluations);
  drop_from(step + 1, history.checkpoints);
}

/// The mean of what is there of two that stand for so many steps.
std::optional<double> mean(const std::optional<double>& one, const std::optional<double>& next,
                           double part_of_next) {
  if (!one || !next) return one ? one : next;
  return *one + (*next - *one) * part_of_next;
}

/// `next` follows `one`.
Step together(const Step& one, const Step& next) {
  Step both = next;
  both.step = one.step;
  both.count = one.count + next.count;
  const double part = static_cast<double>(next.count) / static_cast<double>(both.count);
  both.loss = mean(one.loss, next.loss, part);
  both.accuracy = mean(one.accuracy, next.accuracy, part);
  both.seconds += one.seconds;
  both.waited += one.waited;
  both.images_per_second +=
      (one.images_per_second - next.images_per_second) * one.seconds / std::max(both.seconds, 1e-9);
  for (size_t i = 0; i < feed::kStallCauses; ++i) both.stalls[i] += one.stalls[i];
  return both;
}

void put_pairs_together(RunHistory& history) {
  std::vector<Step>& steps = history.steps;
  size_t kept = 0;
  for (size_t i = 0; i < steps.size(); i += 2)
    steps[kept++] = i + 1 < steps.size() ? together(steps[i], steps[i + 1]) : steps[i];
  steps.resize(kept);
  history.steps_in_one *= 2;
}

void keep_step(const Step& step, size_t most_steps, RunHistory& history) {
  const auto open = [&history] {
    return !history.steps.empty() && history.steps.back().count < history.steps_in_one;
  };
  if (history.steps.size() >= most_steps && !open()) put_pairs_together(history);
  if (open())
    history.steps.back() = together(history.steps.back(), step);
  else
    history.steps.push_back(step);
}

void add_step(const json& line, size_t most_steps, RunHistory& history) {
  Step step;
  step.step = line.at("step").get<uint64_t>();
  step.last_step = step.step;
  step.loss = if_any<double>(line, "loss");
  step.accuracy = if_any<double>(line, "accuracy");
  step.images_per_second = number(line, "samplesPerSecond");
  step.seconds = number(line, "seconds");
  step.waited = number(line, "waitedForInput") + number(line, "waitedForGradients");
  step.workers = count(line, "workers");
  step.plan = count(line, "plan");
  const json stall = if_any<json>(line, "stall").value_or(json::object());
  for (size_t i = 0; i < feed::kStallCauses; ++i)
    step.stalls[i] = number(stall, feed::to_string(static_cast<feed::StallCause>(i)));
  if (!history.steps.empty() && history.steps.back().last_step >= step.step)
    resumed_at(step.step, history);
  keep_step(step, most_steps, history);
}

void add_plan(const json& line, RunHistory& history) {
  RunHistory::Plan plan{.number = count(line, "plan"),
                        .step = count(line, "step"),
                        .cut = text(line, "cut"),
                        .stems_away = count(line, "stemsAway"),
                        .share_percent = if_any<int>(line, "sharePercent").value_or(0),
                        .local_percent = if_any<int>(line, "localInputPercent").value_or(0),
                        .server_percent = if_any<double>(line, "serverPercent"),
                        .activations = text(line, "activations"),
                        .gradients = text(line, "gradients"),
                        .reason = text(line, "reason")};
  history.incarnation = count(line, "incarnation");
  history.emulated = if_any<bool>(line, "emulated").value_or(false);
  // A run numbers its plans anew when it is resumed.
  if (!history.plans.empty() && plan.number <= history.plans.back().number) {
    resumed_at(plan.step, history);
    drop_from(plan.step, history.plans);
  }
  history.plans.push_back(std::move(plan));
}

/// One that workers began and the server made in the end has its time from when they began, with
/// steps beside it; how long these stood still in it is not told.
double stood_still(const json& line, const RunHistory& history) {
  const bool beside =
      !history.steps.empty() && history.steps.back().last_step >= count(line, "step");
  const std::string by = text(line, "by");
  return beside || (!by.empty() && by != "server") ? 0 : number(line, "seconds");
}

void add_evaluation(const json& line, RunHistory& history) {
  const RunHistory::Evaluation evaluation{.step = count(line, "step"),
                                          .accuracy = if_any<double>(line, "accuracy"),
                                          .loss = if_any<double>(line, "loss"),
                                          .verification = if_any<double>(line, "verification"),
                                          .identification = if_any<double>(line, "identification"),
                                          .stood_still = stood_still(line, history)};
  drop_from(evaluation.step, history.evaluations);
  history.evaluations.push_back(evaluation);
}

void add_checkpoint(const json& line, RunHistory& history) {
  const RunHistory::Checkpoint checkpoint{.step = count(line, "step"),
                                          .stood_still = number(line, "seconds")};
  drop_from(checkpoint.step, history.checkpoints);
  history.checkpoints.push_back(checkpoint);
}

RunHistory::Worker worker_of(const json& told) {
  return {.micro_batches = count(told, "microBatches"),
          .stem_gradients = count(told, "stemGradients"),
          .cores = if_any<uint32_t>(told, "cores").value_or(0),
          .decode = number(told, "decodeSeconds"),
          .bytes_per_second = number(told, "bytesPerSecond"),
          .latency = number(told, "latencySeconds")};
}

/// What a worker told anew. A server that was resumed counts from nothing again.
void update(RunHistory::Worker& told, RunHistory::Worker now, uint64_t incarnation) {
  now.incarnation = incarnation;
  now.former_micro_batches = told.former_micro_batches;
  now.former_stem_gradients = told.former_stem_gradients;
  const bool another_life = incarnation != told.incarnation ||
                            now.micro_batches < told.micro_batches - told.former_micro_batches ||
                            now.stem_gradients < told.stem_gradients - told.former_stem_gradients;
  if (another_life) {
    now.former_micro_batches = told.micro_batches;
    now.former_stem_gradients = told.stem_gradients;
  }
  now.micro_batches += now.former_micro_batches;
  now.stem_gradients += now.former_stem_gradients;
  told = now;
}

void add_workers(const json& line, RunHistory& history) {
  for (const json& one : list(line, "workers"))
    update(history.workers[text(one, "name")], worker_of(one), history.incarnation);
  if (const auto local = if_any<json>(line, "local")) {
    if (!history.local) history.local = RunHistory::Worker{};
    update(*history.local, worker_of(*local), history.incarnation);
  }
  if (const auto desired = if_any<uint64_t>(line, "desired")) history.desired_workers = desired;
}

void set_end(const json& line, RunHistory& history) {
  history.end = {
      .state = text(line, "state"), .message = text(line, "message"), .step = count(line, "step")};
  history.total_steps = if_any<uint64_t>(line, "totalSteps");
}

void set_layers(const json& line, RunHistory& history) {
  std::vector<RunHistory::Layer> layers;
  for (const json& one : list(line, "layers"))
    layers.push_back({.name = text(one, "name"),
                      .forward = number(one, "forwardSeconds"),
                      .backward = number(one, "backwardSeconds"),
                      .kept = number(one, "keptBytes"),
                      .weights = number(one, "weightBytes")});
  history.layers = std::move(layers);
}

/// Both passes of a layer in a list of [forward, backward]; 0 where it has no such layer.
double both_passes(const json& layers, size_t place) {
  if (!layers.is_array() || place >= layers.size() || !layers[place].is_array()) return 0;
  double sum = 0;
  for (const json& pass : layers[place]) sum += pass.is_number() ? pass.get<double>() : 0;
  return sum;
}

void set_layer_times(const json& line, RunHistory& history) {
  const json names = list(line, "names");
  const json server = list(line, "server");
  const json workers = list(line, "workers");
  // Where the plan is fixed there was no profile.
  for (size_t i = history.layers.size(); i < names.size() && names[i].is_string(); ++i)
    history.layers.push_back({.name = names[i].get<std::string>()});
  for (size_t i = 0; i < history.layers.size(); ++i) {
    RunHistory::Layer& layer = history.layers[i];
    layer.on_server = both_passes(server, i);
    double sum = 0;
    int timed = 0;
    for (const json& worker : workers) {
      const double its = both_passes(list(worker, "layers"), i);
      sum += its;
      timed += its > 0 ? 1 : 0;
    }
    layer.on_workers = timed == 0 ? 0 : sum / timed;
  }
}

}  // namespace

void add_line(const json& line, size_t most_steps, RunHistory& history) {
  const std::string type = text(line, "type");
  if (type == "step" || type == "plan") history.end.reset();  // it was of a former life
  if (type == "step") add_step(line, most_steps, history);
  if (type == "workers") add_workers(line, history);
  if (type == "plan") add_plan(line, history);
  if (type == "evaluation") add_evaluation(line, history);
  if (type == "checkpoint") add_checkpoint(line, history);
  if (type == "profile") set_layers(line, history);
  if (type == "layers") set_layer_times(line, history);
  if (type == "end") set_end(line, history);
}

}  // namespace outrigger::cli
