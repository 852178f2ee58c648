#include "cli/report/history.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;

double number(const json& line, const char* field) { return line.value(field, 0.0); }
uint64_t count(const json& line, const char* field) { return line.value(field, uint64_t{0}); }
std::optional<double> number_if_any(const json& line, const char* field) {
  return line.contains(field) ? std::optional(number(line, field)) : std::nullopt;
}

/// A resumed run does some steps again, the first being `step`. The checkpoint that it goes on from
/// stays, and what was evaluated before that step: a checkpoint is written behind the evaluation
/// that is due with it.
void resumed_at(uint64_t step, RunHistory& history) {
  std::erase_if(history.steps, [step](const auto& former) { return former.step >= step; });
  std::erase_if(history.evaluations, [step](const auto& former) { return former.step > step; });
  std::erase_if(history.checkpoints, [step](const auto& former) { return former.step > step; });
}

void add_step(const json& line, RunHistory& history) {
  RunHistory::Step step;
  step.step = line.at("step").get<uint64_t>();
  step.loss = number(line, "loss");
  step.accuracy = number(line, "accuracy");
  step.images_per_second = number(line, "samplesPerSecond");
  step.seconds = number(line, "seconds");
  step.waited = number(line, "waitedForInput") + number(line, "waitedForGradients");
  step.workers = count(line, "workers");
  step.plan = count(line, "plan");
  const json stall = line.value("stall", json::object());
  for (size_t i = 0; i < feed::kStallCauses; ++i)
    step.stalls[i] = number(stall, feed::to_string(static_cast<feed::StallCause>(i)));
  if (!history.steps.empty() && history.steps.back().step >= step.step)
    resumed_at(step.step, history);
  history.steps.push_back(step);
}

void add_plan(const json& line, RunHistory& history) {
  RunHistory::Plan plan{.number = count(line, "plan"),
                        .step = count(line, "step"),
                        .cut = line.value("cut", ""),
                        .stems_away = count(line, "stemsAway"),
                        .share_percent = line.value("sharePercent", 0),
                        .local_percent = line.value("localInputPercent", 0),
                        .server_percent = number_if_any(line, "serverPercent"),
                        .activations = line.value("activations", ""),
                        .gradients = line.value("gradients", ""),
                        .reason = line.value("reason", "")};
  history.incarnation = count(line, "incarnation");
  // A run numbers its plans anew when it is resumed.
  if (!history.plans.empty() && plan.number <= history.plans.back().number) {
    resumed_at(plan.step, history);
    std::erase_if(history.plans, [&](const auto& former) { return former.step >= plan.step; });
  }
  history.plans.push_back(std::move(plan));
}

/// One that workers began and the server made in the end has its time from when they began, with
/// steps beside it; how long these stood still in it is not told.
double stood_still(const json& line, const RunHistory& history) {
  const bool beside = !history.steps.empty() && history.steps.back().step >= count(line, "step");
  return beside || line.value("by", "server") != "server" ? 0 : number(line, "seconds");
}

void add_evaluation(const json& line, RunHistory& history) {
  const RunHistory::Evaluation evaluation{.step = count(line, "step"),
                                          .accuracy = number_if_any(line, "accuracy"),
                                          .loss = number_if_any(line, "loss"),
                                          .verification = number_if_any(line, "verification"),
                                          .identification = number_if_any(line, "identification"),
                                          .stood_still = stood_still(line, history)};
  std::erase_if(history.evaluations,
                [&](const auto& former) { return former.step >= evaluation.step; });
  history.evaluations.push_back(evaluation);
}

void add_checkpoint(const json& line, RunHistory& history) {
  const RunHistory::Checkpoint checkpoint{.step = count(line, "step"),
                                          .stood_still = number(line, "seconds")};
  std::erase_if(history.checkpoints,
                [&](const auto& former) { return former.step >= checkpoint.step; });
  history.checkpoints.push_back(checkpoint);
}

RunHistory::Worker worker_of(const json& told) {
  return {.micro_batches = count(told, "microBatches"),
          .stem_gradients = count(told, "stemGradients"),
          .cores = told.value("cores", 0u),
          .decode = number(told, "decodeSeconds"),
          .bytes_per_second = number(told, "bytesPerSecond"),
          .latency = number(told, "latencySeconds")};
}

void add_workers(const json& line, RunHistory& history) {
  for (const json& one : line.value("workers", json::array()))
    history.workers[one.value("name", "")] = worker_of(one);
  if (line.contains("local")) history.local = worker_of(line["local"]);
  if (line.contains("desired")) history.desired_workers = count(line, "desired");
}

void set_layers(const json& line, RunHistory& history) {
  history.layers.clear();
  for (const json& one : line.value("layers", json::array()))
    history.layers.push_back({.name = one.value("name", ""),
                              .forward = number(one, "forwardSeconds"),
                              .backward = number(one, "backwardSeconds"),
                              .kept = number(one, "keptBytes"),
                              .weights = number(one, "weightBytes")});
}

/// Both passes of a layer in a list of [forward, backward]; 0 where it has no such layer.
double both_passes(const json& list, size_t place) {
  if (!list.is_array() || place >= list.size() || !list[place].is_array()) return 0;
  double sum = 0;
  for (const json& pass : list[place]) sum += pass.is_number() ? pass.get<double>() : 0;
  return sum;
}

void set_layer_times(const json& line, RunHistory& history) {
  const json none = json::array();
  const json names = line.value("names", none);
  // Where the plan is fixed there was no profile.
  for (size_t i = history.layers.size(); i < names.size() && names[i].is_string(); ++i)
    history.layers.push_back({.name = names[i].get<std::string>()});
  for (size_t i = 0; i < history.layers.size(); ++i) {
    RunHistory::Layer& layer = history.layers[i];
    layer.on_server = both_passes(line.value("server", none), i);
    double sum = 0;
    int timed = 0;
    for (const json& worker : line.value("workers", none)) {
      const double its = both_passes(worker.value("layers", none), i);
      sum += its;
      timed += its > 0 ? 1 : 0;
    }
    layer.on_workers = timed == 0 ? 0 : sum / timed;
  }
}

void add(const json& line, RunHistory& history) {
  const std::string type = line.value("type", "");
  if (type == "step") add_step(line, history);
  if (type == "workers") add_workers(line, history);
  if (type == "plan") add_plan(line, history);
  if (type == "evaluation") add_evaluation(line, history);
  if (type == "checkpoint") add_checkpoint(line, history);
  if (type == "profile") set_layers(line, history);
  if (type == "layers") set_layer_times(line, history);
}

RunHistory read_rank(const std::filesystem::path& path) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  const std::string text = read_file(path, kMostBytes);
  RunHistory history;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const json parsed = json::parse(line, nullptr, false);
    if (parsed.is_discarded() && lines.eof() && text.back() != '\n') break;
    const std::string place = path.string() + ":" + std::to_string(number);
    if (!parsed.is_object()) throw InvalidInput(place + ": is no line of a run's metrics");
    try {
      add(parsed, history);
    } catch (const json::exception& error) {
      throw InvalidInput(place + ": " + error.what());
    }
  }
  return history;
}

}  // namespace

std::string RunHistory::Plan::name() const {
  std::string text = "cut Input";
  const std::string share = share_percent > 0 ? std::to_string(share_percent) : "<1";
  if (splits()) text = cut + " " + share + " %";
  if (local_percent > 0) text += ", " + std::to_string(local_percent) + " % of the input local";
  return text;
}

std::vector<RunHistory::Step> RunHistory::settled() const {
  const size_t left_out = std::min<size_t>(3, steps.size() / 4);
  return {steps.begin() + static_cast<ptrdiff_t>(left_out), steps.end()};
}

RunHistory::Stops RunHistory::stops() const {
  const auto sum = [this](const auto& list) {
    double seconds = 0;
    for (const auto& one : list) {
      if (!steps.empty() && one.step <= steps.back().step) seconds += one.stood_still;
    }
    return seconds;
  };
  const double evaluating = sum(evaluations);
  const double saving = sum(checkpoints);
  double all = std::max(evaluating + saving, 1e-9);
  for (const Step& step : steps) all += step.seconds;
  return {.evaluation_percent = 100 * evaluating / all, .checkpoint_percent = 100 * saving / all};
}

RunHistory read_history(const std::filesystem::path& folder) {
  const auto path = folder / "metrics.jsonl";
  RunHistory history = read_rank(path);
  if (history.steps.empty())
    throw InvalidInput(path.string() + ": no step is in it; the run has not begun to train");
  for (size_t rank = 1;; ++rank) {
    const auto of_rank = folder / ("metrics-" + std::to_string(rank) + ".jsonl");
    if (!std::filesystem::exists(of_rank)) return history;
    RunHistory its = read_rank(of_rank);
    // A run that is resumed with fewer ranks leaves the files of the others.
    if (its.steps.empty() || its.incarnation != history.incarnation) return history;
    history.further_ranks.push_back(std::move(its));
  }
}

}  // namespace outrigger::cli
