#include <algorithm>
#include <utility>

#include "common/error.h"
#include "feed/coordinator.h"

/// The coordinator's evaluations: pixels for the server to run, or scores from workers.
namespace outrigger::feed {
namespace {

/// How far workers may run ahead of the evaluation's consumer.
constexpr uint32_t kEvaluationWindow = 16;

}  // namespace

void Coordinator::begin_evaluation(const data::Dataset& dataset, uint32_t batch) {
  ensure(!evaluation_, "one evaluation at a time");
  evaluation_ = kFirstEvaluation + evaluations_++;
  evaluation_data_ = &dataset;
  evaluation_taken_ = 0;
  std::vector<WorkItem> items;
  for (uint32_t first = 0; first < dataset.size(); first += batch) {
    WorkItem item;
    item.step = *evaluation_;
    item.index = static_cast<uint32_t>(items.size());
    item.evaluation = true;
    for (uint32_t id = first; id < std::min(first + batch, dataset.size()); ++id) {
      item.samples.push_back({id, id, dataset.at(id)});
    }
    items.push_back(std::move(item));
  }
  ledger_.draw(*evaluation_, std::move(items));
}

uint32_t Coordinator::evaluation_batches() const {
  return static_cast<uint32_t>(ledger_.steps().at(*evaluation_).size());
}

// The last one is what the run was for, and no later one makes up for it.
bool Coordinator::evaluations_stop() const {
  return options_.evaluation_stop.stop_requested() && step_ < options_.total_steps;
}

std::optional<ReadyMicroBatch> Coordinator::try_take_evaluation(uint32_t index, TimePoint now) {
  throw_if_failed();
  if (evaluations_stop()) throw Cancelled("the evaluation was asked to stop");
  WorkItem* item = ledger_.find(*evaluation_, index);
  ensure(item != nullptr, "an evaluation batch is in range");
  if (!item->result) {
    note_needed(*item, now);
    return std::nullopt;
  }
  waiting_ = false;
  evaluation_taken_ = index + 1;
  auto batch = ready(*item);
  dispatch(now);
  return batch;
}

void Coordinator::end_evaluation() {
  for (const WorkItem& item : ledger_.steps().at(*evaluation_)) cancel(item, item.holders);
  ledger_.steps().erase(*evaluation_);
  evaluation_.reset();
}

bool Coordinator::may_lease_now(const WorkItem& item) const {
  return !item.evaluation || item.index < evaluation_taken_ + kEvaluationWindow;
}

// ---- beside training

bool Coordinator::can_score(const Worker& worker) {
  const WorkerTraits& traits = worker.traits;
  return !worker.leaves && !traits.local && traits.runs_stems && traits.scores &&
         !worker.no_evaluation_until;
}

size_t Coordinator::scorers() const {
  if (evaluations_stop()) return 0;
  return static_cast<size_t>(
      std::ranges::count_if(workers_, [](const auto& entry) { return can_score(entry.second); }));
}

void Coordinator::begin_scoring(ScoringOptions options, TimePoint now) {
  ensure(!evaluation_ && !scoring_, "one evaluation at a time");
  options.number = kFirstEvaluation + evaluations_++;
  options.incarnation = options_.incarnation;
  scoring_.emplace(std::move(options));
  dispatch(now);
}

void Coordinator::dispatch_scores() {
  if (!scoring_ || scoring_->done()) return;
  for (const auto& [id, worker] : workers_) {
    if (!can_score(worker) || worker.set_aside_until) continue;
    for (auto& message : scoring_->give(id)) post(id, std::move(message));
  }
}

std::vector<Scoring::Batch> Coordinator::end_scoring() {
  ensure(scoring_.has_value(), "there is an evaluation to end");
  cancel(scoring_->in_hand());
  auto results = scoring_->take_results();
  scoring_.reset();
  return results;
}

void Coordinator::take_in(WorkerId from, const Scores& scores, TimePoint now) {
  if (!of_scoring(scores.key)) {
    ++dropped_;
    return;
  }
  cancel(scoring_->take(from, scores));
  workers_.at(from).no_evaluation = {};
  dispatch(now);
}

void Coordinator::cancel(const std::vector<std::pair<WorkerId, WorkKey>>& attempts) {
  for (const auto& [worker, key] : attempts) {
    if (workers_.contains(worker)) post(worker, Cancel{key});
  }
}

}  // namespace outrigger::feed
