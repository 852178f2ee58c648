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

WorkerModel::WorkerModel(const JobCosts& job, const WorkerRates& rates, uint32_t leases,
                         uint32_t asked_at_once)
    : job_(job), rates_(rates), room_(leases, asked_at_once) {
  outbox_.emplace_back(feed::Pull{leases});
}

void WorkerModel::take_outbox(std::vector<feed::WorkerMessage>& messages) {
  if (!next()) send(room_.ask());
  messages.clear();
  messages.swap(outbox_);
}

const CutCosts& WorkerModel::costs(const Work& work) const {
  return *std::ranges::find(job_.cuts, work.lease.cut, &CutCosts::cut);
}

void WorkerModel::receive(feed::ServerMessage message) {
  std::visit(
      Overloaded{[this](feed::Lease& lease) {
                   const feed::WorkKey key = lease.key;
                   const int32_t cut = lease.cut;
                   works_.emplace(key, Work{.lease = std::move(lease), .times = {.cut = cut}});
                   room_.take();
                 },
                 [this](const feed::StemWeights& weights) { stems_.insert(weights.version); },
                 [this](const feed::CutGradient& gradient) {
                   const auto at = works_.find(gradient.key);
                   if (at != works_.end()) at->second.stage = Stage::kBackward;
                 },
                 [this](const feed::Cancel& cancel) {
                   if (const auto at = works_.find(cancel.key); at != works_.end()) drop(at);
                 },
                 [this](const feed::Committed& committed) {
                   while (!works_.empty() && works_.begin()->first.step < committed.step)
                     drop(works_.begin());
                   stems_.erase(stems_.begin(), stems_.lower_bound(committed.oldest_version));
                 },
                 [](const feed::Farewell&) {}},
      message);
}

double WorkerModel::seconds(const Work& work) const {
  if (work.stage == Stage::kDecode) return rates_.decode / kDecodeParts;
  const CutCosts& cut = costs(work);
  return (work.stage == Stage::kForward ? cut.stem_forward : cut.stem_backward) / rates_.stem_speed;
}

std::optional<WorkerModel::Piece> WorkerModel::first_at(Stage stage) const {
  for (const auto& [key, work] : works_) {
    if (work.stage != stage) continue;
    if (stage == Stage::kForward && !stems_.contains(work.lease.stem_version)) continue;
    const int parts = stage == Stage::kDecode ? kDecodeParts - work.decoded : 1;
    return Piece{key, stage, seconds(work), parts};
  }
  return std::nullopt;
}

std::optional<WorkerModel::Piece> WorkerModel::next() const {
  for (const Stage stage : {Stage::kBackward, Stage::kForward, Stage::kDecode}) {
    if (auto piece = first_at(stage)) return piece;
  }
  return std::nullopt;
}

void WorkerModel::done(const Piece& piece) {
  const auto at = works_.find(piece.key);
  if (at == works_.end()) return;
  if (piece.stage == Stage::kDecode) decoded(at, piece);
  if (piece.stage == Stage::kForward) forward_done(at, piece.seconds);
  if (piece.stage == Stage::kBackward) backward_done(at, piece.seconds);
}

void WorkerModel::decoded(Works::iterator at, const Piece& piece) {
  Work& work = at->second;
  work.times.decode += static_cast<float>(piece.parts * piece.seconds);
  work.decoded += piece.parts;
  if (work.decoded < kDecodeParts) return;
  if (work.lease.cut > 0) {
    work.stage = Stage::kForward;
    return;
  }
  send_micro_batch(at);
  finish(at);
}

void WorkerModel::forward_done(Works::iterator at, double seconds) {
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

void WorkerModel::backward_done(Works::iterator at, double seconds) {
  at->second.times.backward = static_cast<float>(seconds);
  outbox_.emplace_back(feed::StemGradient{at->first, std::make_shared<const std::vector<float>>(),
                                          at->second.times});
  finish(at);
}

void WorkerModel::send_micro_batch(Works::iterator at) {
  const Work& work = at->second;
  const Shape shape{static_cast<int64_t>(work.lease.samples.size())};
  if (contents_ == nullptr || contents_->shape() != shape)
    contents_ = std::make_shared<Tensor>(ElementType::kUint8, shape);
  outbox_.emplace_back(
      feed::MicroBatch{.key = at->first, .tensor = contents_, .times = work.times});
}

void WorkerModel::give_room_back(Work& work) {
  if (std::exchange(work.room_given_back, true)) return;
  send(room_.give_back(work.times.decode + work.times.forward));
}

void WorkerModel::send(const std::optional<feed::Pull>& pull) {
  if (pull) outbox_.emplace_back(*pull);
}

void WorkerModel::finish(Works::iterator at) {
  give_room_back(at->second);
  works_.erase(at);
}

void WorkerModel::drop(Works::iterator at) {
  finish(at);
  send(room_.ask());
}

}  // namespace outrigger::training
