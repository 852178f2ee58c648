#include "feed/coordinator.h"

#include <algorithm>

#include "common/error.h"

namespace outrigger::feed {

Coordinator::Coordinator(CoordinatorOptions options, SampleOrder order,
                         const data::Dataset& dataset, Plan first_plan)
    : options_([&] {
        if (options.all_micro_batches == 0) options.all_micro_batches = options.micro_batches;
        return options;
      }()),
      order_(std::move(order)),
      dataset_(dataset),
      plan_(std::move(first_plan)),
      ledger_(options_.incarnation),
      step_(options_.first_step),
      next_draw_(options_.first_step) {
  for (const uint32_t id : options_.known_broken) broken_[id] = "known before";
}

void Coordinator::throw_if_failed() const {
  if (bad_data_) throw InvalidInput(*bad_data_);
  if (unreadable_) throw IoError(*unreadable_);
}

// ---- drawing

uint64_t Coordinator::first_slot(uint64_t step, uint32_t index) const {
  return (step * options_.all_micro_batches + options_.first_micro_batch + index) *
         options_.micro_batch;
}

uint64_t Coordinator::stem_version(uint64_t step, const Plan& plan) const {
  if (!plan.stem_trains) return kFrozenStem;
  return step > options_.staleness ? step - options_.staleness : 0;
}

/// By the workers that are there when a step is drawn; where none of them can hold its part, who
/// comes must hold all.
double Coordinator::memory_for_stems(const Plan& plan) const {
  if (plan.stems_away == 0) return 0;
  std::vector<double> has;
  for (const auto& [id, worker] : workers_) {
    if (!worker.traits.local && worker.traits.runs_stems) has.push_back(worker.traits.memory);
  }
  const double needs =
      feed::memory_for_stems(plan.stem_memory, plan.stems_away, plan.stem_trains, std::move(has));
  return std::min(needs, plan.stem_memory.needs(plan.stems_away, plan.stem_trains, 1));
}

size_t Coordinator::stem_workers() const {
  const double needs = memory_for_stems(plan_);
  return static_cast<size_t>(std::ranges::count_if(workers_, [needs](const auto& entry) {
    const WorkerTraits& traits = entry.second.traits;
    return !traits.local && traits.holds_stems(needs);
  }));
}

WorkItem Coordinator::make_item(uint64_t step, uint32_t index, const Plan& plan) {
  WorkItem item;
  item.step = step;
  item.index = index;
  item.cut = plan.cut_of(index, options_.micro_batches);
  item.local = plan.is_local(index, options_.micro_batches);
  item.stem_trains = item.cut > 0 && plan.stem_trains;
  item.stem_version = stem_version(step, plan);
  item.activations = plan.activations;
  item.gradients = plan.gradients;
  const uint64_t first = first_slot(step, index);
  for (uint64_t slot = first; slot < first + options_.micro_batch; ++slot)
    item.samples.push_back(sample_at(slot, item.tries.emplace_back()));
  return item;
}

LeaseSample Coordinator::sample_at(uint64_t slot, SlotTries& tries) {
  uint32_t id = order_.at(slot, tries.broken);
  // Where the data failed the job there may be nothing else.
  while (no_images_.contains(id) && !bad_data_) {
    if (tries.broken++ == 0) tries.reason = broken_.at(id);
    id = order_.at(slot, tries.broken);
  }
  return {slot, id, dataset_.at(id)};
}

void Coordinator::draw_step() {
  std::vector<WorkItem> items;
  const double stem_memory = memory_for_stems(plan_);
  for (uint32_t index = 0; index < options_.micro_batches; ++index) {
    items.push_back(make_item(next_draw_, index, plan_));
    if (items.back().cut > 0) items.back().stem_memory = stem_memory;
  }
  ledger_.draw(next_draw_, std::move(items));
  step_plans_[next_draw_] = plan_;
  ++next_draw_;
}

// ---- the trainer

void Coordinator::set_plan(const Plan& plan) {
  ensure(plan.number > plan_.number, "a plan's number only grows");
  plan_ = plan;
}

const Plan& Coordinator::plan_of(uint64_t step, TimePoint now) {
  ensure(step >= step_ && step <= step_ + 1, "a plan is asked for the present step or the next");
  while (next_draw_ <= step) draw_step();
  dispatch(now);
  return step_plans_.at(step);
}

void Coordinator::publish_stem(uint64_t version,
                               std::shared_ptr<const std::vector<float>> parameters,
                               std::shared_ptr<const std::vector<float>> buffers, TimePoint now) {
  stems_[version] = {std::move(parameters), std::move(buffers), now};
  for (const auto& step : ledger_.steps()) {
    for (const WorkItem& item : step.second) {
      if (item.cut == 0 || item.stem_version != version) continue;
      for (const Holder& holder : item.holders) send_stem(holder.worker, item);
    }
  }
  dispatch(now);
}

void Coordinator::note_needed(WorkItem& item, TimePoint now) {
  waiting_ = true;
  if (item.needed_since) return;
  item.needed_since = now;
  dispatch(now);
}

ReadyMicroBatch Coordinator::ready(WorkItem& item) const {
  ReadyMicroBatch batch;
  batch.step = item.step;
  batch.index = item.index;
  batch.cut = item.cut;
  batch.tensor = std::move(item.result->tensor);
  batch.scales = std::move(item.result->scales);
  batch.statistics = std::move(item.result->statistics);
  for (const LeaseSample& sample : item.samples) {
    batch.slots.push_back(sample.slot);
    batch.labels.push_back(sample.sample.label);
  }
  item.result.reset();
  return batch;
}

std::optional<ReadyMicroBatch> Coordinator::try_take(uint64_t step, uint32_t index, TimePoint now) {
  throw_if_failed();
  plan_of(step, now);
  WorkItem* item = ledger_.find(step, index);
  ensure(item != nullptr &&
             (item->missing() == WorkItem::Missing::kForward || item->result.has_value()),
         "a micro-batch is taken once");
  if (!item->result) {
    note_needed(*item, now);
    return std::nullopt;
  }
  waiting_ = false;
  return ready(*item);
}

void Coordinator::head_done(uint64_t step, uint32_t index,
                            std::shared_ptr<const Tensor> cut_gradient, TimePoint now) {
  WorkItem* item = ledger_.find(step, index);
  ensure(item != nullptr && item->stem_trains, "a gradient at the cut belongs to a trained stem");
  const auto gradient = cut_gradient;
  if (ledger_.head_done(*item, std::move(cut_gradient))) {
    const Holder& source = item->holders.front();
    post(source.worker,
         CutGradient{
             {options_.incarnation, step, index, source.attempt}, item->gradients, gradient});
  } else {
    dispatch(now);
  }
}

std::shared_ptr<const std::vector<float>> Coordinator::try_take_gradient(uint64_t step,
                                                                         uint32_t index,
                                                                         TimePoint now) {
  throw_if_failed();
  WorkItem* item = ledger_.find(step, index);
  ensure(item != nullptr && item->state == WorkState::kHeadDone,
         "a stem gradient is asked for after the head");
  if (item->stem_gradient == nullptr) {
    note_needed(*item, now);
    return nullptr;
  }
  waiting_ = false;
  return item->stem_gradient;
}

std::vector<AuditItem> Coordinator::commit(uint64_t step, TimePoint now) {
  ensure(step == step_, "steps are committed in order");
  std::vector<AuditItem> audit;
  for (const WorkItem& item : ledger_.steps().at(step)) {
    AuditItem line{step, item.index, item.samples.front().slot, {}, item.pixel_hash};
    for (size_t i = 0; i < item.samples.size(); ++i) {
      const LeaseSample& sample = item.samples[i];
      line.samples.push_back(sample.id);
      if (item.tries[i].broken == 0) continue;
      const uint32_t drawn = order_.at(sample.slot);
      replacements_.push_back(
          {sample.slot, drawn, sample.id, dataset_.at(drawn).path, item.tries[i].reason});
    }
    audit.push_back(std::move(line));
  }
  ledger_.commit(step);
  step_plans_.erase(step);
  ++step_;
  const uint64_t oldest = step_ > options_.staleness ? step_ - options_.staleness : 0;
  std::erase_if(stems_, [&](const auto& stem) { return stem.first < oldest; });
  for (auto& entry : workers_) {
    std::erase_if(entry.second.stems_sent, [&](const auto& sent) { return sent.first < oldest; });
    post(entry.first, Committed{step_, oldest});
  }
  dispatch(now);
  return audit;
}

void Coordinator::check_bad_fraction() {
  const size_t allowed = allowed_broken(options_.max_bad_fraction, dataset_.size());
  const bool all = broken_.size() >= dataset_.size();  // slots would be tried for ever
  if ((broken_.size() <= allowed && !all) || bad_data_) return;
  std::string text = std::to_string(broken_.size()) + " of " + std::to_string(dataset_.size()) +
                     " samples are broken, data.maxBadFraction allows " + std::to_string(allowed) +
                     ":";
  for (const auto& [id, reason] : broken_) text += "\n  " + dataset_.at(id).path + ": " + reason;
  bad_data_ = text;
}

}  // namespace outrigger::feed
