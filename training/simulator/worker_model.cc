#include "training/simulator/worker_model.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "common/tensor.h"

namespace outrigger::training {
namespace {

/// An agent decodes a few samples at a time and looks for more urgent work in between.
constexpr int kDecodeParts = 8;

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace

WorkerModel::WorkerModel(const JobCosts& job, const WorkerRates& rates, uint32_t leases)
    : job_(job), rates_(rates) {
  outbox_.emplace_back(feed::Pull{leases});
}

const CutCosts& WorkerModel::costs(const Work& work) const {
  return *std::ranges::find(job_.cuts, work.lease.cut, &CutCosts::cut);
}

void WorkerModel::receive(const feed::ServerMessage& message) {
  std::visit(
      Overloaded{[this](const feed::Lease& lease) {
                   works_.emplace(lease.key, Work{.lease = lease, .times = {.cut = lease.cut}});
                 },
                 [this](const feed::StemWeights& weights) { stems_.insert(weights.version); },
                 [this](const feed::CutGradient& gradient) {
                   const auto at = works_.find(gradient.key);
                   if (at != works_.end()) at->second.stage = Stage::kBackward;
                 },
                 [this](const feed::Cancel& cancel) {
                   if (const auto at = works_.find(cancel.key); at != works_.end()) finish(at);
                 },
                 [this](const feed::Committed& committed) {
                   while (!works_.empty() && works_.begin()->first.step < committed.step)
                     finish(works_.begin());
                   stems_.erase(stems_.begin(), stems_.lower_bound(committed.oldest_version));
                 },
                 [](const feed::Farewell&) {}},
      message);
}

WorkerModel::Works::iterator WorkerModel::find(Stage stage) {
  return std::ranges::find_if(works_, [&](const auto& entry) {
    const Work& work = entry.second;
    return work.stage == stage &&
           (stage != Stage::kForward || stems_.contains(work.lease.stem_version));
  });
}

// The finishing calls look the work up again: it may be cancelled meanwhile.
std::optional<WorkerModel::Piece> WorkerModel::next() {
  if (const auto at = find(Stage::kBackward); at != works_.end()) {
    const double seconds = costs(at->second).stem_backward / rates_.stem_speed;
    return Piece{seconds, [this, key = at->first, seconds] { backward_done(key, seconds); }};
  }
  if (const auto at = find(Stage::kForward); at != works_.end()) {
    const double seconds = costs(at->second).stem_forward / rates_.stem_speed;
    return Piece{seconds, [this, key = at->first, seconds] { forward_done(key, seconds); }};
  }
  if (const auto at = find(Stage::kDecode); at != works_.end()) {
    const double seconds = rates_.decode / kDecodeParts;
    return Piece{seconds, [this, key = at->first, seconds] { decoded(key, seconds); }};
  }
  return std::nullopt;
}

void WorkerModel::decoded(const feed::WorkKey& key, double seconds) {
  const auto at = works_.find(key);
  if (at == works_.end()) return;
  Work& work = at->second;
  work.times.decode += static_cast<float>(seconds);
  if (++work.decoded < kDecodeParts) return;
  if (work.lease.cut > 0) {
    work.stage = Stage::kForward;
    return;
  }
  send_micro_batch(at);
  finish(at);
}

void WorkerModel::forward_done(const feed::WorkKey& key, double seconds) {
  const auto at = works_.find(key);
  if (at == works_.end()) return;
  Work& work = at->second;
  work.times.forward = static_cast<float>(seconds);
  if (work.lease.kind == feed::WorkKind::kBackward) {
    work.stage = Stage::kBackward;
    return;
  }
  send_micro_batch(at);
  if (!work.lease.stem_trains) {
    finish(at);
    return;
  }
  work.stage = Stage::kAwaitGradient;
  give_room_back(work);
}

void WorkerModel::backward_done(const feed::WorkKey& key, double seconds) {
  const auto at = works_.find(key);
  if (at == works_.end()) return;
  at->second.times.backward = static_cast<float>(seconds);
  outbox_.emplace_back(
      feed::StemGradient{key, std::make_shared<const std::vector<float>>(), at->second.times});
  finish(at);
}

void WorkerModel::send_micro_batch(Works::iterator at) {
  const Work& work = at->second;
  const auto samples = static_cast<int64_t>(work.lease.samples.size());
  outbox_.emplace_back(
      feed::MicroBatch{.key = at->first,
                       .tensor = std::make_shared<Tensor>(ElementType::kUint8, Shape{samples}),
                       .times = work.times});
}

void WorkerModel::give_room_back(Work& work) {
  if (std::exchange(work.room_given_back, true)) return;
  outbox_.emplace_back(feed::Pull{1});
}

void WorkerModel::finish(Works::iterator at) {
  give_room_back(at->second);
  works_.erase(at);
}

}  // namespace outrigger::training
