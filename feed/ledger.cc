#include "feed/ledger.h"

#include <algorithm>

#include "common/error.h"

namespace outrigger::feed {

const char* to_string(WorkState state) {
  switch (state) {
    case WorkState::kDrawn:
      return "Drawn";
    case WorkState::kLeased:
      return "Leased";
    case WorkState::kReceived:
      return "Received";
    case WorkState::kHeadDone:
      return "HeadDone";
    case WorkState::kCommitted:
      return "Committed";
  }
  return "unknown";
}

bool WorkItem::unleased() const { return missing() != Missing::kNothing && holders.empty(); }

void Ledger::draw(uint64_t step, std::vector<WorkItem> items) {
  ensure(!steps_.contains(step), "a step is drawn once");
  steps_.emplace(step, std::move(items));
}

WorkItem* Ledger::find(uint64_t step, uint32_t index) {
  const auto found = steps_.find(step);
  if (found == steps_.end() || index >= found->second.size()) return nullptr;
  return &found->second[index];
}

bool Ledger::has_result(uint64_t step, uint32_t index) const {
  const auto found = steps_.find(step);
  return found != steps_.end() && found->second.at(index).result.has_value();
}

WorkItem* Ledger::wanted(const WorkKey& key, WorkerId from) {
  if (key.incarnation != incarnation_) return nullptr;
  WorkItem* item = find(key.step, key.index);
  if (item == nullptr) return nullptr;
  const bool held = std::ranges::any_of(item->holders, [&](const Holder& holder) {
    return holder.worker == from && holder.attempt == key.attempt;
  });
  return held ? item : nullptr;
}

WorkKey Ledger::lease(WorkItem& item, WorkerId worker, WorkKind kind, TimePoint now) {
  const WorkKey key{incarnation_, item.step, item.index, item.attempts++};
  item.holders.push_back({worker, key.attempt, kind, now});
  if (item.state == WorkState::kDrawn) item.state = WorkState::kLeased;
  return key;
}

double bytes_on_wire(const Tensor& tensor, WireFormat wire) {
  const auto elements = static_cast<double>(element_count(tensor.shape()));
  if (tensor.type() == ElementType::kUint8 || wire == WireFormat::kInt8) return elements;
  return elements * (wire == WireFormat::kBFloat16 ? 2 : 4);
}

namespace {

/// Ends all attempts but `attempt`, which is returned apart.
std::pair<Holder, std::vector<Holder>> settle(WorkItem& item, uint32_t attempt) {
  std::vector<Holder> others;
  std::optional<Holder> winner;
  for (const Holder& holder : item.holders) {
    if (holder.attempt == attempt) {
      winner = holder;
    } else {
      others.push_back(holder);
    }
  }
  ensure(winner.has_value(), "a result comes from an attempt that holds the lease");
  item.holders.clear();
  item.needed_since.reset();
  item.read_failures = 0;
  return {*winner, std::move(others)};
}

}  // namespace

std::vector<Holder> Ledger::received(WorkItem& item, const WorkKey& key, MicroBatch result) {
  ensure(item.missing() == WorkItem::Missing::kForward, "a forward result was wanted");
  auto settled = settle(item, key.attempt);
  item.state = WorkState::kReceived;
  item.source = settled.first;
  item.pixel_hash = result.pixel_hash;
  item.times = result.times;
  if (result.tensor != nullptr) item.sent_bytes = bytes_on_wire(*result.tensor, result.wire);
  item.result = std::move(result);
  return std::move(settled.second);
}

bool Ledger::head_done(WorkItem& item, std::shared_ptr<const Tensor> cut_gradient) {
  ensure(item.state == WorkState::kReceived && !item.result,
         "the head runs once, on a result that was taken");
  item.state = WorkState::kHeadDone;
  item.cut_gradient = std::move(cut_gradient);
  if (!item.source) return false;
  item.holders.push_back(*item.source);
  return true;
}

std::vector<Holder> Ledger::gradient_received(WorkItem& item, const WorkKey& key,
                                              std::shared_ptr<const std::vector<float>> gradients) {
  ensure(item.missing() == WorkItem::Missing::kGradient, "a stem gradient was wanted");
  auto settled = settle(item, key.attempt);
  item.stem_gradient = std::move(gradients);
  return std::move(settled.second);
}

void Ledger::give_back(WorkItem& item, uint32_t attempt) {
  std::erase_if(item.holders, [&](const Holder& holder) { return holder.attempt == attempt; });
  if (item.source && item.source->attempt == attempt) item.source.reset();
  if (item.state == WorkState::kLeased && item.holders.empty()) item.state = WorkState::kDrawn;
}

void Ledger::lose(WorkerId worker) {
  for (auto& step : steps_) {
    for (WorkItem& item : step.second) {
      const auto held = item.holders;
      for (const Holder& holder : held) {
        if (holder.worker == worker) give_back(item, holder.attempt);
      }
      if (item.source && item.source->worker == worker) item.source.reset();
    }
  }
}

std::map<WorkState, uint32_t> Ledger::held_by(WorkerId worker) const {
  std::map<WorkState, uint32_t> held;
  for (const auto& step : steps_) {
    for (const WorkItem& item : step.second) {
      const bool leased = std::ranges::any_of(
          item.holders, [&](const Holder& holder) { return holder.worker == worker; });
      const bool kept = item.source && item.source->worker == worker;
      if (leased || kept) ++held[item.state];
    }
  }
  return held;
}

void Ledger::commit(uint64_t step) {
  const auto found = steps_.find(step);
  ensure(found != steps_.end(), "a committed step was drawn");
  for (WorkItem& item : found->second) {
    ensure(item.missing() == WorkItem::Missing::kNothing, "a committed step is complete");
    item.state = WorkState::kCommitted;
  }
  steps_.erase(found);
}

}  // namespace outrigger::feed
