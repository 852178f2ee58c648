#include <algorithm>
#include <utility>

#include "feed/coordinator.h"

/// The coordinator's side towards workers: who gets what.
namespace outrigger::feed {

std::optional<TimePoint> Coordinator::weights_since(const WorkItem& item) const {
  if (item.cut == 0) return TimePoint{};
  const auto stem = stems_.find(item.stem_version);
  return stem == stems_.end() ? std::nullopt : std::optional(stem->second.since);
}

void Coordinator::count_leases(TimePoint now) {
  for (auto& [id, worker] : workers_) {
    worker.leases = 0;
    worker.could_since.reset();
  }
  for (const WorkItem* item : leased_) {
    const auto since = weights_since(*item);
    for (const Holder& holder : item->holders) {
      const auto found = workers_.find(holder.worker);
      if (found == workers_.end()) continue;
      Worker& worker = found->second;
      ++worker.leases;
      if (since) worker.could_since = std::min(worker.could_since.value_or(*since), *since);
    }
  }
  usual_pace_ = mean_pace();
  forget_old_paces(now);
}

double Coordinator::mean_pace() const {
  double sum = 0;
  int known = 0;
  for (const auto& [id, worker] : workers_) {
    if (worker.traits.local || worker.pace == 0) continue;
    sum += worker.pace;
    ++known;
  }
  return known == 0 ? 0 : sum / known;
}

void Coordinator::forget_old_paces(TimePoint now) {
  constexpr double kTooOld = 50;  // times the pace
  for (auto& [id, worker] : workers_) {
    if (worker.leases > 0 || !worker.busy_since || worker.pace <= usual_pace_) continue;
    if (to_seconds(now - *worker.busy_since) > kTooOld * worker.pace) worker.pace = 0;
  }
}

/// A worker does one thing after the other, so a result has taken it no longer than since the one
/// before, since its lease, or since the weights were there: that it waited for them says nothing
/// of it.
void Coordinator::note_pace(WorkerId id, const WorkItem& item, uint32_t attempt, TimePoint now) {
  constexpr double kNewest = 0.25;
  Worker& worker = workers_.at(id);
  const auto holder = std::ranges::find(item.holders, attempt, &Holder::attempt);
  TimePoint since = holder->since;
  if (worker.busy_since) since = std::max(since, *worker.busy_since);
  since = std::max(since, weights_since(item).value_or(since));
  worker.busy_since = now;
  const double took = std::chrono::duration<double>(now - since).count();
  worker.pace = worker.pace == 0 ? took : (1 - kNewest) * worker.pace + kNewest * took;
}

double Coordinator::busy(const Worker& worker, TimePoint now) const {
  if (!worker.could_since || !worker.busy_since) return 0;
  return to_seconds(now - std::max(*worker.busy_since, *worker.could_since));
}

/// Who has shown nothing yet counts as one of the others, and nobody is faster than what it is at.
double Coordinator::done_in(const Worker& worker, TimePoint now) const {
  const double pace = worker.pace > 0 ? worker.pace : usual_pace_;
  return std::max(pace, busy(worker, now)) * (worker.leases + worker.kept + 1);
}

uint64_t Coordinator::last_to_draw() const {
  size_t leases = 0;
  for (const auto& [id, worker] : workers_)
    leases += worker.traits.local ? 0 : worker.traits.leases;
  return std::min(options_.total_steps, step_ + 1 + steps_ahead(leases, options_.micro_batches));
}

void Coordinator::dispatch(TimePoint now) {
  if (bad_data_ || unreadable_) return;
  survey();
  forget_kept();
  if (anything_to_lease()) {
    count_leases(now);
    lease_all(to_redo_, now);
    lease_all(to_compute_, now);
    // Draw ahead while somebody has room for more.
    for (const uint64_t last = last_to_draw(); next_draw_ < last && vacancy().any();) {
      draw_step();
      survey();
      forget_kept();
      lease_all(to_compute_, now);
    }
  }
  dispatch_scores();
}

bool Coordinator::anything_to_lease() const {
  // Of whom nothing is known, how many it holds is counted later.
  if (std::ranges::any_of(workers_, [](const auto& entry) {
        return entry.second.appetite > 0 && !entry.second.leaves;
      }))
    return !to_redo_.empty() || !to_compute_.empty() || next_draw_ < last_to_draw();
  const auto urgent = [this](const WorkItem* item) { return is_urgent(*item); };
  return !to_redo_.empty() || std::ranges::any_of(to_compute_, urgent);
}

void Coordinator::survey() {
  to_compute_.clear();
  to_redo_.clear();
  leased_.clear();
  for (auto& step : ledger_.steps()) {
    for (WorkItem& item : step.second) {
      const auto missing = item.missing();
      if (missing == WorkItem::Missing::kNothing) continue;
      const bool forward = missing == WorkItem::Missing::kForward;
      if (item.holders.empty()) {
        (forward ? to_compute_ : to_redo_).push_back(&item);
      } else if (forward) {
        leased_.push_back(&item);
      }
    }
  }
}

Coordinator::Vacancy Coordinator::vacancy() const {
  Vacancy there_is;
  for (const auto& [id, worker] : workers_) {
    if (worker.leaves) continue;
    if (worker.has_room()) (worker.traits.local ? there_is.local : there_is.remote) = true;
    if (!worker.traits.local && !worker.set_aside_until) there_is.remote_pixels = true;
  }
  return there_is;
}

// The local worker asks for all that it may ever be given, so it nearly always has room: most that
// is drawn ahead is none of its work, and is told so without asking each worker.
bool Coordinator::is_out_of_reach(const WorkItem& item, const Vacancy& there_is) const {
  if (is_urgent(item) || there_is.remote) return false;
  if (!there_is.local) return true;
  const bool helps = waiting_ && item.step == step_;
  if (item.local || helps) return false;
  const bool pixels = item.cut == 0 && !item.evaluation;
  return pixels ? there_is.remote_pixels : can_take(item, false);
}

void Coordinator::forget_kept() {
  for (auto& entry : workers_) entry.second.kept = 0;
}

// Gradients are urgent, and what is urgent waits for no worker: only items to compute are kept.
void Coordinator::lease_all(const std::vector<WorkItem*>& items, TimePoint now) {
  Vacancy there_is = vacancy();
  for (WorkItem* item : items) {
    if (!may_lease_now(*item) || is_out_of_reach(*item, there_is)) continue;
    const auto worker = choose_worker(*item, now);
    if (!worker) continue;
    lease_to(*worker, *item, now);
    there_is = vacancy();
  }
}

bool Coordinator::is_urgent(const WorkItem& item) const {
  return item.needed_since.has_value() || item.missing() == WorkItem::Missing::kGradient;
}

bool Coordinator::eligible(WorkerId id, const Worker& worker, const WorkItem& item) const {
  if (worker.leaves || worker.set_aside_until || (item.evaluation && worker.no_evaluation_until))
    return false;
  const WorkerTraits& traits = worker.traits;
  if (item.cut > 0 && !traits.holds_stems(item.stem_memory)) return false;
  return std::ranges::none_of(item.holders,
                              [&](const Holder& holder) { return holder.worker == id; });
}

bool Coordinator::may_help(WorkerId local, const WorkItem& item) const {
  if (!waiting_ || item.step != step_) return false;
  return std::ranges::none_of(ledger_.steps().at(step_), [&](const WorkItem& other) {
    return other.missing() == WorkItem::Missing::kForward &&
           std::ranges::find(other.holders, local, &Holder::worker) != other.holders.end();
  });
}

bool Coordinator::can_take(const WorkItem& item, bool local) const {
  return std::ranges::any_of(workers_, [&](const auto& entry) {
    const auto& [id, worker] = entry;
    return worker.traits.local == local && eligible(id, worker, item);
  });
}

/// Whether the plan leaves remote workers no pixels, and nobody knows any more what this one can
/// do: it makes one micro-batch of what is kept local, else no plan that uses it would be found.
bool Coordinator::has_to_show(const Worker& worker, const WorkItem& item, TimePoint now) const {
  constexpr Duration kForgotten = std::chrono::minutes(1);
  if (worker.appetite <= 0 || worker.leases > 0) return false;
  if (worker.busy_since && now - *worker.busy_since <= kForgotten) return false;
  const Plan& plan = step_plans_.at(item.step);
  return plan.local_inputs + plan.stems_away == options_.micro_batches;
}

/// The one that would be done first, by its pace and what it has in hand; among equals one with
/// room, then the next in turn. Where that one has no room, the item waits for it, and a slower one
/// may have a later item, for which there is more time. Urgent work goes to one with room, and
/// where there is none on top of what a worker asked for, the least of it: its earlier leases may
/// wait for weights that only come when this is done. The local worker shares its cores with the
/// device, so where there are others it takes only what the plan keeps local, what the trainer
/// waits for, and, while the trainer waits for others, one more of the same step at a time. What is
/// kept local goes to others only when the trainer waits for it, or for them to show what they do.
std::optional<WorkerId> Coordinator::choose_worker(const WorkItem& item, TimePoint now) {
  const bool urgent = is_urgent(item);
  const bool of_remote = !urgent && !item.local && can_take(item, false);
  const bool of_local = !urgent && item.local && can_take(item, true);
  std::optional<Bid> with_room;
  std::optional<Bid> without;
  std::optional<Bid> least_on_top;
  for (auto& [id, worker] : workers_) {
    const bool takes = worker.traits.local ? !of_remote || may_help(id, item)
                                           : !of_local || has_to_show(worker, item, now);
    if (!takes || !eligible(id, worker, item)) continue;
    // What it was like when it last made one must not keep it from showing what it is like now.
    const bool shows = of_local && !worker.traits.local;
    const Bid bid{id, &worker, shows ? 0 : done_in(worker, now)};
    auto& first = worker.has_room() ? with_room : without;
    if (!first || bid.is_before(*first)) first = bid;
    if (!least_on_top || bid.has_more_room(*least_on_top)) least_on_top = bid;
  }
  const auto id_of = [](const std::optional<Bid>& bid) {
    return bid ? std::optional(bid->id) : std::nullopt;
  };
  if (urgent) return id_of(with_room ? with_room : least_on_top);
  if (!with_room || !without || without->done_in >= with_room->done_in) return id_of(with_room);
  ++without->worker->kept;
  return std::nullopt;
}

void Coordinator::lease_to(WorkerId id, WorkItem& item, TimePoint now) {
  WorkKind kind = item.evaluation ? WorkKind::kEvaluate : WorkKind::kForward;
  if (item.missing() == WorkItem::Missing::kGradient) kind = WorkKind::kBackward;
  Lease lease{ledger_.lease(item, id, kind, now),
              kind,
              item.cut,
              item.stem_trains,
              item.stem_version,
              item.activations,
              item.gradients,
              item.samples,
              kind == WorkKind::kBackward ? item.cut_gradient : nullptr};
  Worker& worker = workers_.at(id);
  --worker.appetite;
  if (worker.leases == 0) worker.busy_since = now;
  if (kind != WorkKind::kBackward) ++worker.leases;
  worker.turn = next_turn_++;
  send_stem(id, item);
  post(id, std::move(lease));
}

void Coordinator::send_stem(WorkerId id, const WorkItem& item) {
  if (item.cut == 0) return;
  const auto stem = stems_.find(item.stem_version);
  if (stem == stems_.end()) return;  // follows when it is published
  auto& sent = workers_.at(id).stems_sent;
  const auto found = sent.find(item.stem_version);
  if (found != sent.end() && found->second >= item.cut) return;
  sent[item.stem_version] = item.cut;
  const Plan& plan = step_plans_.at(item.step);
  post(id, StemWeights{item.stem_version, item.cut, stem->second.parameters, stem->second.buffers,
                       plan.stem_parameters, plan.stem_buffers});
}

void Coordinator::cancel(const WorkItem& item, const std::vector<Holder>& attempts) {
  for (const Holder& holder : attempts) {
    if (workers_.contains(holder.worker)) {
      post(holder.worker, Cancel{{options_.incarnation, item.step, item.index, holder.attempt}});
    }
  }
}

void Coordinator::note_rivals(const WorkItem& item, TimePoint now) {
  if (item.holders.size() < 2) return;
  survey();
  count_leases(now);
}

// Who is overtaken again and again never shows its pace: what it was at tells the least of it.
void Coordinator::overtaken(const WorkItem& item, const std::vector<Holder>& attempts,
                            TimePoint now) {
  for (const Holder& holder : attempts) {
    const auto found = workers_.find(holder.worker);
    if (found != workers_.end())
      found->second.pace = std::max(found->second.pace, busy(found->second, now));
  }
  cancel(item, attempts);
}

}  // namespace outrigger::feed
