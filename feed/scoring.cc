#include "feed/scoring.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/error.h"

namespace outrigger::feed {
namespace {

/// One that is computed and one whose images are read meanwhile.
constexpr uint32_t kInHand = 2;

}  // namespace

Scoring::Scoring(ScoringOptions options) : options_(std::move(options)) {
  const data::Dataset& data = *options_.dataset;
  for (uint32_t first = 0; first < data.size(); first += options_.batch) {
    Work work;
    work.samples.resize(std::min(options_.batch, data.size() - first));
    std::iota(work.samples.begin(), work.samples.end(), first);
    waiting_.push_back(static_cast<uint32_t>(batches_.size()));
    batches_.push_back(std::move(work));
  }
}

std::optional<uint32_t> Scoring::next_for(WorkerId worker) {
  if (!waiting_.empty()) {
    const uint32_t next = waiting_.front();
    waiting_.pop_front();
    return next;
  }
  if (hands_[worker].leases > 0 || with_one_.empty()) return std::nullopt;
  return *with_one_.begin();  // of those that were given out longest ago
}

void Scoring::note_holders(uint32_t index) {
  if (batches_[index].holders.size() == 1) {
    with_one_.insert(index);
  } else {
    with_one_.erase(index);
  }
}

Lease Scoring::lease(WorkerId worker, uint32_t index) {
  Work& work = batches_[index];
  Lease lease;
  lease.key = {options_.incarnation, options_.number, index, work.attempts++};
  lease.kind = WorkKind::kScore;
  lease.cut = options_.layers;
  lease.stem_version = options_.number;
  for (const uint32_t id : work.samples)
    lease.samples.push_back({id, id, options_.dataset->at(id)});
  work.holders.emplace_back(worker, lease.key.attempt);
  note_holders(index);
  ++hands_[worker].leases;
  return lease;
}

std::vector<ServerMessage> Scoring::give(WorkerId worker) {
  std::vector<ServerMessage> messages;
  Hand& hand = hands_[worker];
  while (hand.leases < kInHand) {
    const auto index = next_for(worker);
    if (!index) break;
    if (!hand.has_weights) {
      hand.has_weights = true;
      messages.emplace_back(StemWeights{options_.number, options_.layers, options_.parameters,
                                        options_.buffers, options_.parameters->size(),
                                        options_.buffers->size()});
    }
    messages.emplace_back(lease(worker, *index));
  }
  return messages;
}

Scoring::Work* Scoring::held(WorkerId from, const WorkKey& key) {
  if (key.incarnation != options_.incarnation || !is_mine(key) || key.index >= batches_.size())
    return nullptr;
  Work& work = batches_[key.index];
  return std::ranges::find(work.holders, std::pair(from, key.attempt)) == work.holders.end()
             ? nullptr
             : &work;
}

void Scoring::release(Work& work, uint32_t index, WorkerId worker) {
  const auto held =
      std::erase_if(work.holders, [&](const auto& one) { return one.first == worker; });
  hands_[worker].leases -= static_cast<uint32_t>(held);
  note_holders(index);
  if (held > 0 && work.holders.empty() && !work.done) waiting_.push_front(index);
}

std::vector<std::pair<WorkerId, WorkKey>> Scoring::end_attempts(Work& work, const WorkKey& key,
                                                                WorkerId from) {
  std::vector<std::pair<WorkerId, WorkKey>> others;
  for (const auto& [worker, attempt] : std::exchange(work.holders, {})) {
    --hands_[worker].leases;
    if (worker == from) continue;
    others.emplace_back(worker, key);
    others.back().second.attempt = attempt;
  }
  note_holders(key.index);
  return others;
}

void Scoring::finish(Work& work) {
  work.done = true;
  ++done_;
}

std::vector<std::pair<WorkerId, WorkKey>> Scoring::take(WorkerId from, const Scores& scores) {
  Work* const work = held(from, scores.key);
  if (work == nullptr) return {};
  if (scores.values.size() != work->samples.size() * options_.width) {
    throw InvalidInput("scores " + to_string(scores.key) + ": " +
                       std::to_string(work->samples.size()) + " rows of " +
                       std::to_string(options_.width) + " values were wanted, " +
                       std::to_string(scores.values.size()) + " values came");
  }
  work->rows = scores.values;
  finish(*work);
  return end_attempts(*work, scores.key, from);
}

std::vector<std::pair<WorkerId, WorkKey>> Scoring::take(WorkerId from, const Broken& broken) {
  Work* const work = held(from, broken.key);
  if (work == nullptr) return {};
  std::vector<uint32_t> ids;
  for (const auto& item : broken.items) {
    if (item.position >= work->samples.size())
      throw InvalidInput("a broken sample's position is outside its lease");
    ids.push_back(work->samples[item.position]);
  }
  std::erase_if(work->samples,
                [&](uint32_t id) { return std::ranges::find(ids, id) != ids.end(); });
  if (work->samples.empty()) {
    finish(*work);
  } else {
    waiting_.push_front(broken.key.index);
  }
  // Results of others would have another number of rows.
  return end_attempts(*work, broken.key, from);
}

bool Scoring::read_failed(WorkerId from, const WorkKey& key) {
  Work* const work = held(from, key);
  if (work == nullptr) return false;
  release(*work, key.index, from);
  return true;
}

void Scoring::lose(WorkerId worker) {
  if (!hands_.contains(worker)) return;
  for (uint32_t index = 0; index < batches_.size(); ++index)
    release(batches_[index], index, worker);
  hands_.erase(worker);
}

std::vector<std::pair<WorkerId, WorkKey>> Scoring::in_hand() const {
  std::vector<std::pair<WorkerId, WorkKey>> all;
  for (uint32_t index = 0; index < batches_.size(); ++index) {
    for (const auto& [worker, attempt] : batches_[index].holders)
      all.push_back({worker, {options_.incarnation, options_.number, index, attempt}});
  }
  return all;
}

std::vector<Scoring::Batch> Scoring::take_results() {
  std::vector<Batch> results;
  for (Work& work : batches_) {
    Batch batch;
    for (const uint32_t id : work.samples) batch.labels.push_back(options_.dataset->label(id));
    if (work.done) batch.rows = std::move(work.rows);
    results.push_back(std::move(batch));
  }
  return results;
}

}  // namespace outrigger::feed
