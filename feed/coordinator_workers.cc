#include <algorithm>
#include <utility>

#include "common/error.h"
#include "feed/coordinator.h"

/// The coordinator's side towards workers: who gets what, and what comes back.
namespace outrigger::feed {

WorkerId Coordinator::add_worker(WorkerTraits traits, TimePoint now) {
  const WorkerId id = next_worker_++;
  workers_[id] = Worker{std::move(traits), 0, std::nullopt, {}};
  turn_.push_back(id);
  dispatch(now);
  return id;
}

void Coordinator::lose_worker(WorkerId worker, TimePoint now) {
  if (workers_.erase(worker) == 0) return;
  std::erase(turn_, worker);
  std::erase_if(outbox_, [&](const Outgoing& out) { return out.to == worker; });
  ledger_.lose(worker);
  dispatch(now);
}

std::vector<Outgoing> Coordinator::take_outbox() { return std::exchange(outbox_, {}); }

void Coordinator::receive(WorkerId worker, WorkerMessage message, TimePoint now) {
  if (!workers_.contains(worker)) return;
  std::visit([&](auto& one) { take_in(worker, one, now); }, message);
}

void Coordinator::take_in(WorkerId from, const Pull& pull, TimePoint now) {
  constexpr int64_t kMost = 1024;
  auto& appetite = workers_.at(from).appetite;
  appetite = std::min<int64_t>(appetite + pull.leases, kMost);
  dispatch(now);
}

void Coordinator::take_in(WorkerId from, MicroBatch& result, TimePoint now) {
  WorkItem* item = ledger_.wanted(result.key, from);
  if (item == nullptr || item->missing() != WorkItem::Missing::kForward) {
    ++dropped_;
    return;
  }
  if (result.tensor == nullptr || result.tensor->shape().empty() ||
      result.tensor->shape()[0] != static_cast<int64_t>(item->samples.size())) {
    throw InvalidInput("micro-batch " + to_string(result.key) + ": " +
                       std::to_string(item->samples.size()) +
                       " samples were leased, the result has another number");
  }
  note_pace(from, *item, result.key.attempt, now);
  if (!item->evaluation)
    forward_latency_.add(item->needed_since ? now - *item->needed_since : Duration{0});
  const WorkKey key = result.key;
  cancel(*item, ledger_.received(*item, key, std::move(result)));
  dispatch(now);
}

void Coordinator::take_in(WorkerId from, const StemGradient& result, TimePoint now) {
  WorkItem* item = ledger_.wanted(result.key, from);
  if (item == nullptr || item->missing() != WorkItem::Missing::kGradient) {
    ++dropped_;
    return;
  }
  if (result.gradients == nullptr ||
      result.gradients->size() != step_plans_.at(item->step).stem_parameters) {
    throw InvalidInput("stem gradient " + to_string(result.key) + " has a wrong number of values");
  }
  item->times = result.times;
  backward_latency_.add(item->needed_since ? now - *item->needed_since : Duration{0});
  cancel(*item, ledger_.gradient_received(*item, result.key, result.gradients));
}

void Coordinator::take_in(WorkerId from, const Broken& broken, TimePoint now) {
  WorkItem* item = ledger_.wanted(broken.key, from);
  if (item == nullptr) {
    ++dropped_;
    return;
  }
  ledger_.give_back(*item, broken.key.attempt);
  cancel(*item, item->holders);
  for (const Holder& other : std::vector<Holder>(item->holders))
    ledger_.give_back(*item, other.attempt);
  std::vector<uint32_t> ids;
  for (const auto& one : broken.items) {
    if (one.position >= item->samples.size())
      throw InvalidInput("a broken sample's position is outside its lease");
    ids.push_back(item->samples[one.position].id);
    if (item->evaluation) continue;
    if (order_.mark_broken(ids.back())) broken_reasons_[ids.back()] = one.reason;
  }
  if (item->evaluation) {
    std::erase_if(item->samples,
                  [&](const LeaseSample& s) { return std::ranges::find(ids, s.id) != ids.end(); });
    if (item->samples.empty())
      item->result = MicroBatch{.key = broken.key, .tensor = std::make_shared<Tensor>()};
    if (item->samples.empty()) item->state = WorkState::kReceived;
  } else {
    check_bad_fraction();
    if (!bad_data_) fill_samples(*item);
  }
  dispatch(now);
}

void Coordinator::take_in(WorkerId from, const ReadFailed& failed, TimePoint now) {
  WorkItem* item = ledger_.wanted(failed.key, from);
  if (item == nullptr) {
    ++dropped_;
    return;
  }
  ledger_.give_back(*item, failed.key.attempt);
  Worker& worker = workers_.at(from);
  worker.set_aside_until =
      now + (worker.traits.local ? options_.set_aside / 10 : options_.set_aside);
  if (++item->read_failures > options_.max_read_failures) {
    unreadable_ = "reading failed " + std::to_string(item->read_failures) + " times, last on " +
                  worker.traits.name + ": " + failed.reason;
  }
  dispatch(now);
}

void Coordinator::take_in(WorkerId from, const Leaving&, TimePoint now) {
  ledger_.lose(from);
  std::erase(turn_, from);
  dispatch(now);
}

void Coordinator::tick(TimePoint now) {
  for (auto& entry : workers_) {
    auto& until = entry.second.set_aside_until;
    if (until && now >= *until) until.reset();
  }
  for (auto& step : ledger_.steps()) {
    for (WorkItem& item : step.second) {
      if (!is_late(item, now)) continue;
      const auto worker = choose_worker(item);
      if (!worker) continue;
      ++second_leases_;
      item.needed_since = now;
      lease_to(*worker, item, now);
    }
  }
  dispatch(now);
}

bool Coordinator::is_late(const WorkItem& item, TimePoint now) const {
  constexpr size_t kMostHolders = 3;
  if (!item.needed_since || item.holders.empty() || item.holders.size() >= kMostHolders)
    return false;
  if (item.missing() == WorkItem::Missing::kNothing) return false;
  const auto& latency =
      item.missing() == WorkItem::Missing::kForward ? forward_latency_ : backward_latency_;
  return now - *item.needed_since > std::max(options_.least_deadline, 2 * latency.percentile95());
}

// ---- leasing

void Coordinator::count_leases() {
  for (auto& entry : workers_) entry.second.leases = 0;
  for (const auto& step : ledger_.steps()) {
    for (const WorkItem& item : step.second) {
      if (item.missing() != WorkItem::Missing::kForward) continue;
      for (const Holder& holder : item.holders) {
        const auto worker = workers_.find(holder.worker);
        if (worker != workers_.end()) ++worker->second.leases;
      }
    }
  }
}

/// A worker does one thing after the other, so a result has taken it no longer than since the one
/// before, or since its lease.
void Coordinator::note_pace(WorkerId id, const WorkItem& item, uint32_t attempt, TimePoint now) {
  constexpr double kNewest = 0.25;
  Worker& worker = workers_.at(id);
  const auto holder = std::ranges::find(item.holders, attempt, &Holder::attempt);
  TimePoint since = holder->since;
  if (worker.last_result) since = std::max(since, *worker.last_result);
  worker.last_result = now;
  const double took = std::chrono::duration<double>(now - since).count();
  worker.pace = worker.pace == 0 ? took : (1 - kNewest) * worker.pace + kNewest * took;
}

double Coordinator::done_in(const Worker& worker) const {
  return worker.pace * (worker.leases + 1);
}

void Coordinator::dispatch(TimePoint now) {
  if (bad_data_ || unreadable_) return;
  count_leases();
  dispatch_missing(WorkItem::Missing::kGradient, now);
  dispatch_missing(WorkItem::Missing::kForward, now);
  // Draw ahead while somebody has room for more.
  const uint64_t last = std::min(options_.total_steps, step_ + options_.steps_ahead + 1);
  while (next_draw_ < last &&
         std::ranges::any_of(workers_, [](const auto& w) { return w.second.appetite > 0; })) {
    draw_step();
    dispatch_missing(WorkItem::Missing::kForward, now);
  }
}

void Coordinator::dispatch_missing(WorkItem::Missing missing, TimePoint now) {
  for (auto& step : ledger_.steps()) {
    for (WorkItem& item : step.second) {
      if (item.missing() != missing || !item.holders.empty() || !may_lease_now(item)) continue;
      if (const auto worker = choose_worker(item)) lease_to(*worker, item, now);
    }
  }
}

bool Coordinator::is_urgent(const WorkItem& item) const {
  return item.needed_since.has_value() || item.missing() == WorkItem::Missing::kGradient;
}

bool Coordinator::eligible(WorkerId id, const Worker& worker, const WorkItem& item) const {
  if (worker.set_aside_until) return false;
  if (item.cut > 0 && !worker.traits.runs_stems) return false;
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

bool Coordinator::remote_can_take(const WorkItem& item) const {
  return std::ranges::any_of(turn_, [&](WorkerId id) {
    const Worker& worker = workers_.at(id);
    return !worker.traits.local && eligible(id, worker, item);
  });
}

/// Of those with room the one that would be done first, by its pace and what it has in hand; among
/// equals the next in turn. Urgent work may go on top of what a worker asked for: its earlier
/// leases may wait for weights that only come when this is done. The local worker shares its cores
/// with the device, so where there are others it takes only what the trainer waits for, and, while
/// the trainer waits for others, one more of the same step at a time.
std::optional<WorkerId> Coordinator::choose_worker(const WorkItem& item) const {
  const bool urgent = is_urgent(item);
  std::optional<WorkerId> best;
  std::optional<WorkerId> fallback;
  for (const WorkerId id : turn_) {
    const Worker& worker = workers_.at(id);
    if (!eligible(id, worker, item)) continue;
    if (worker.traits.local && !urgent && remote_can_take(item) && !may_help(id, item)) continue;
    if (worker.appetite > 0) {
      if (!best || done_in(worker) < done_in(workers_.at(*best))) best = id;
      continue;
    }
    if (!fallback || worker.appetite > workers_.at(*fallback).appetite) fallback = id;
  }
  return best || !urgent ? best : fallback;
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
  --workers_.at(id).appetite;
  if (kind != WorkKind::kBackward) ++workers_.at(id).leases;
  std::erase(turn_, id);
  turn_.push_back(id);
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

}  // namespace outrigger::feed
