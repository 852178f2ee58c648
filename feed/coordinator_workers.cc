#include <algorithm>
#include <functional>
#include <utility>

#include "common/error.h"
#include "feed/coordinator.h"

/// The coordinator's side towards workers: what comes back from them.
namespace outrigger::feed {
namespace {

/// Whether they are some places of a lease of so many samples, in order.
bool are_places(const std::vector<Broken::Item>& items, size_t samples) {
  if (items.empty() || items.back().position >= samples) return false;
  return std::ranges::adjacent_find(items, std::ranges::greater_equal{}, &Broken::Item::position) ==
         items.end();
}

}  // namespace

WorkerId Coordinator::add_worker(WorkerTraits traits, TimePoint now) {
  const WorkerId id = next_worker_++;
  Worker& worker = workers_[id];
  worker.traits = std::move(traits);
  worker.turn = next_turn_++;
  dispatch(now);
  return id;
}

void Coordinator::lose_worker(WorkerId worker, TimePoint now) {
  if (workers_.erase(worker) == 0) return;
  std::erase_if(outbox_, [&](const Outgoing& out) { return out.to == worker; });
  ledger_.lose(worker);
  if (scoring_) scoring_->lose(worker);
  dispatch(now);
}

std::vector<Outgoing> Coordinator::take_outbox() { return std::exchange(outbox_, {}); }

void Coordinator::take_outbox(std::vector<Outgoing>& messages) {
  messages.clear();
  messages.swap(outbox_);
}

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
  if (!crossings_.empty()) check_crossing(result, crossings_.at(item->cut), item->samples.size());
  note_pace(from, *item, result.key.attempt, now);
  if (item->evaluation)
    workers_.at(from).no_evaluation = {};
  else
    forward_latency_.add(item->needed_since ? now - *item->needed_since : Duration{0});
  const WorkKey key = result.key;
  note_rivals(*item, now);
  overtaken(*item, ledger_.received(*item, key, std::move(result)), now);
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
  workers_.at(from).busy_since = now;  // with its next forward pass from now on
  backward_latency_.add(item->needed_since ? now - *item->needed_since : Duration{0});
  note_rivals(*item, now);
  overtaken(*item, ledger_.gradient_received(*item, result.key, result.gradients), now);
}

void Coordinator::take_in(WorkerId from, const Broken& broken, TimePoint now) {
  if (of_scoring(broken.key)) {
    cancel(scoring_->take(from, broken));
    dispatch(now);
    return;
  }
  WorkItem* item = ledger_.wanted(broken.key, from);
  if (item == nullptr) {
    ++dropped_;
    return;
  }
  if (!are_places(broken.items, item->samples.size()))
    throw InvalidInput("broken samples of " + to_string(broken.key) +
                       ": none, not ascending, or outside of its " +
                       std::to_string(item->samples.size()));
  if (item->missing() == WorkItem::Missing::kGradient) {
    // They were images when the head ran: the gradient at the cut is theirs, not of others.
    const Broken::Item& first = broken.items.front();
    const std::string& path = item->samples[first.position].sample.path;
    take_in(from,
            ReadFailed{broken.key, path + " was an image when it was read first: " + first.reason},
            now);
    return;
  }
  ledger_.give_back(*item, broken.key.attempt);
  cancel(*item, item->holders);
  for (const Holder& other : std::vector<Holder>(item->holders))
    ledger_.give_back(*item, other.attempt);
  if (item->evaluation) {
    leave_out(*item, broken);
  } else {
    replace_broken(*item, broken);
  }
  dispatch(now);
}

/// By the outcome in this slot alone: another one shows another part of the image, and whether it
/// was tried by now depends on who works, and on resumes. Only what is the same in every slot may
/// be remembered.
void Coordinator::replace_broken(WorkItem& item, const Broken& broken) {
  for (const Broken::Item& one : broken.items) {
    const uint32_t id = item.samples[one.position].id;
    broken_[id] = one.reason;
    if (one.always) no_images_.insert(id);
  }
  check_bad_fraction();
  for (const Broken::Item& one : broken.items) {
    LeaseSample& sample = item.samples[one.position];
    SlotTries& tries = item.tries[one.position];
    if (tries.broken++ == 0) tries.reason = one.reason;
    sample = sample_at(sample.slot, tries);
  }
}

void Coordinator::leave_out(WorkItem& item, const Broken& broken) {
  for (auto one = broken.items.rbegin(); one != broken.items.rend(); ++one)
    item.samples.erase(item.samples.begin() + one->position);
  if (!item.samples.empty()) return;
  item.result = MicroBatch{.key = broken.key, .tensor = std::make_shared<Tensor>()};
  item.state = WorkState::kReceived;
}

void Coordinator::take_in(WorkerId from, const ReadFailed& failed, TimePoint now) {
  WorkItem* const item = ledger_.wanted(failed.key, from);
  const bool scores = of_scoring(failed.key) && scoring_->read_failed(from, failed.key);
  if (item == nullptr && !scores) {
    ++dropped_;
    return;
  }
  if (item != nullptr) ledger_.give_back(*item, failed.key.attempt);
  Worker& worker = workers_.at(from);
  if (scores || (item->evaluation && !worker.traits.local)) {
    keep_from_evaluations(worker, now);
  } else {
    worker.set_aside_until =
        now + (worker.traits.local ? options_.set_aside / 10 : options_.set_aside);
    count_failed_read(*item, worker, failed.reason, now);
  }
  dispatch(now);
}

/// It may not have the set at all, which fails no job: the server can read it.
void Coordinator::keep_from_evaluations(Worker& worker, TimePoint now) {
  if (worker.no_evaluation_until) return;
  constexpr Duration kLongest = std::chrono::hours(1);
  worker.no_evaluation = std::clamp(2 * worker.no_evaluation, options_.no_evaluation, kLongest);
  worker.no_evaluation_until = now + worker.no_evaluation;
}

void Coordinator::count_failed_read(WorkItem& item, const Worker& worker, const std::string& reason,
                                    TimePoint now) {
  if (item.read_failures++ == 0) item.unread_since = now;
  const Duration unread = now - item.unread_since;
  if (item.read_failures <= options_.max_read_failures || unread < options_.unreadable_after)
    return;
  unreadable_ = "reading failed " + std::to_string(item.read_failures) + " times in " +
                std::to_string(std::chrono::round<std::chrono::seconds>(unread).count()) +
                " s, last on " + worker.traits.name + ": " + reason;
}

void Coordinator::take_in(WorkerId from, const Leaving&, TimePoint now) {
  ledger_.lose(from);
  if (scoring_) scoring_->lose(from);
  workers_.at(from).leaves = true;
  dispatch(now);
}

void Coordinator::tick(TimePoint now) {
  for (auto& entry : workers_) {
    Worker& worker = entry.second;
    for (auto* until : {&worker.set_aside_until, &worker.no_evaluation_until})
      if (*until && now >= **until) until->reset();
  }
  lease_what_is_late(now);
  dispatch(now);
}

void Coordinator::lease_what_is_late(TimePoint now) {
  std::vector<WorkItem*> late;
  for (auto& step : ledger_.steps()) {
    for (WorkItem& item : step.second) {
      if (is_late(item, now)) late.push_back(&item);
    }
  }
  if (late.empty()) return;
  survey();
  count_leases(now);
  for (WorkItem* item : late) {
    const auto worker = choose_worker(*item, now);
    if (!worker) continue;
    ++second_leases_;
    item->needed_since = now;
    lease_to(*worker, *item, now);
  }
}

bool Coordinator::is_late(const WorkItem& item, TimePoint now) const {
  constexpr size_t kMostHolders = 3;
  if (!item.needed_since || item.holders.empty() || item.holders.size() >= kMostHolders)
    return false;
  if (item.missing() == WorkItem::Missing::kNothing) return false;
  const auto& latency =
      item.missing() == WorkItem::Missing::kForward ? forward_latency_ : backward_latency_;
  const Duration waited = now - *item.needed_since;
  return waited > options_.least_deadline && waited > 2 * latency.percentile95();
}

}  // namespace outrigger::feed
