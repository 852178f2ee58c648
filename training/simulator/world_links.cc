#include <algorithm>
#include <utility>
#include <variant>

#include "training/simulator/world.h"

// What travels between the server and its workers.
namespace outrigger::training {
namespace {

/// Of messages without a tensor, and of what a frame adds.
constexpr double kSmall = 512;

}  // namespace

double World::bytes_of(const feed::ServerMessage& message) const {
  if (const auto* weights = std::get_if<feed::StemWeights>(&message))
    return kSmall + costs_of(weights->cut).weights;
  if (const auto* lease = std::get_if<feed::Lease>(&message);
      lease != nullptr && lease->kind == feed::WorkKind::kBackward)
    return kSmall + costs_of(lease->cut).gradients;
  if (const auto* gradient = std::get_if<feed::CutGradient>(&message)) {
    const auto& items = coordinator_.ledger().steps().at(gradient->key.step);
    return kSmall + costs_of(items.at(gradient->key.index).cut).gradients;
  }
  return kSmall;
}

double World::bytes_of(const feed::WorkerMessage& message) const {
  if (const auto* batch = std::get_if<feed::MicroBatch>(&message))
    return kSmall + (batch->times.cut == 0 ? job_.pixels : costs_of(batch->times.cut).activations);
  if (const auto* gradient = std::get_if<feed::StemGradient>(&message))
    return kSmall + costs_of(gradient->times.cut).weights;
  return kSmall;
}

/// When the last byte is out, where link and card each send one message after the other.
TimePoint World::sent(Peer& peer, Way& way, Way& card, double bytes) const {
  const WorkerRates& rates = peer.model->rates();
  way.free = std::max(way.free, now()) + from_seconds(bytes / rates.bytes_per_second);
  card.free = std::max(card.free, now()) + from_seconds(bytes / server_.bytes_per_second);
  way.free = std::max(way.free, card.free);
  return way.free + from_seconds(rates.latency);
}

double World::packing_of(const feed::ServerMessage& message) const {
  const auto* gradient = std::get_if<feed::CutGradient>(&message);
  if (gradient == nullptr || job_.link_work.gradients == 0) return 0;
  const auto& items = coordinator_.ledger().steps().at(gradient->key.step);
  return job_.link_work.gradients * costs_of(items.at(gradient->key.index).cut).crossing;
}

double World::packing_of(const feed::WorkerMessage& message) const {
  const auto* batch = std::get_if<feed::MicroBatch>(&message);
  if (batch == nullptr || batch->times.cut == 0) return 0;
  return job_.link_work.activations * costs_of(batch->times.cut).crossing;
}

template <typename Message>
double World::link_work(const Message& message, double frames) const {
  const LinkWork& work = job_.link_work;
  return frames * work.frame + bytes_of(message) * work.byte + packing_of(message);
}

template <typename Then>
void World::work_at_server(double seconds, Then then) {
  if (seconds <= 0) {
    then();
  } else if (server_.shared) {
    device_.start(seconds / server_.whole_speed(), std::move(then));
  } else {
    local_cores_.start(seconds / server_.whole_speed(), std::move(then));
  }
}

void World::work_at_worker(feed::WorkerId id, double seconds) {
  if (seconds <= 0) return;
  Peer& peer = peers_.at(id);
  seconds /= peer.model->rates().whole_speed();
  if (peer.at_work) {
    peer.delay += seconds;
    settle_end(id, peer);
  } else {
    peer.link_works = std::max(peer.link_works, now()) + from_seconds(seconds);
  }
}

void World::deliver(feed::WorkerId id, feed::ServerMessage message, double frames) {
  const double work = peers_.at(id).place ? link_work(message, frames) : 0;
  const double bytes = bytes_of(message);
  work_at_server(work, [this, id, work, bytes, message = std::move(message)]() mutable {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    Peer& peer = found->second;
    const TimePoint when = peer.place ? sent(peer, peer.to_worker, card_out_, bytes) : now();
    events_.at(when, [this, id, work, message = std::move(message)]() mutable {
      take_at_worker(id, std::move(message), work);
    });
  });
}

void World::take_at_worker(feed::WorkerId id, feed::ServerMessage message, double work) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  work_at_worker(id, work);
  found->second.model->receive(std::move(message));
  flush(id);
  start_work(id);
}

void World::flush(feed::WorkerId id) {
  Peer& peer = peers_.at(id);
  peer.model->take_outbox(from_worker_);
  double frames = 1;  // all go together
  for (auto& message : from_worker_) {
    if (peer.place && std::holds_alternative<feed::MicroBatch>(message))
      ++micro_batches_[*peer.place];
    const double work = peer.place ? link_work(message, frames) : 0;
    frames = 0;
    work_at_worker(id, work);
    const TimePoint when =
        peer.place ? sent(peer, peer.to_server, card_in_, bytes_of(message)) : now();
    events_.at(when, [this, id, work, message = std::move(message)]() mutable {
      work_at_server(work, [this, id, message = std::move(message)]() mutable {
        if (!peers_.contains(id)) return;
        coordinator_.receive(id, std::move(message), now());
        post_outbox();
      });
    });
  }
}

void World::post_outbox() {
  coordinator_.take_outbox(from_server_);
  std::optional<feed::WorkerId> before;  // what goes to one worker goes together
  for (auto& out : from_server_) {
    if (!peers_.contains(out.to)) continue;
    // Nobody is woken for what is committed: it goes with what comes next.
    const bool waits = std::holds_alternative<feed::Committed>(out.message);
    const double frames = waits || before == out.to ? 0 : 1;
    if (!waits) before = out.to;
    deliver(out.to, std::move(out.message), frames);
  }
}

}  // namespace outrigger::training
