#include "training/simulator/world.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/error.h"

namespace outrigger::training {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(20);

feed::CoordinatorOptions coordinator_options(const JobCosts& job, uint64_t steps) {
  feed::CoordinatorOptions options;
  options.total_steps = steps;
  options.micro_batches = job.micro_batches;
  options.micro_batch = 1;  // a sample stands for all of its micro-batch: only times count
  options.staleness = job.staleness;
  return options;
}

}  // namespace

World::World(const JobCosts& job, const SimulatedCluster& cluster, const SimulationOptions& options,
             const feed::Plan& first_plan, const data::Dataset& dataset)
    : job_(job),
      cluster_(cluster),
      server_(cluster.server),
      options_(options),
      random_(options.seed, RandomUse::kSyntheticData, 5),
      coordinator_(coordinator_options(job, options.steps),
                   feed::SampleOrder({.seed = options.seed, .samples = dataset.size()}), dataset,
                   first_plan),
      device_(events_),
      local_cores_(events_),
      micro_batches_(cluster.workers.size()) {
  add_worker(std::nullopt);
  events_.after(kTick, [this] { tick(); });
}

void World::tick() {
  coordinator_.tick(now());
  post_outbox();
  events_.after(kTick, [this] { tick(); });
}

const CutCosts& World::costs_of(int32_t cut) const {
  return *std::ranges::find(job_.cuts, cut, &CutCosts::cut);
}

double World::jittered(double seconds) {
  if (options_.jitter == 0) return seconds;
  return seconds * (1 + options_.jitter * (2 * static_cast<double>(random_.uniform()) - 1));
}

ServerRates changed(ServerRates rates, const RateChange& change) {
  rates.cores *= change.speed;
  rates.own_cores *= change.speed;
  rates.decode /= change.speed;
  rates.bytes_per_second *= change.link;
  return rates;
}

WorkerRates changed(WorkerRates rates, const RateChange& change) {
  rates.cores *= change.speed;
  rates.stem_speed *= change.speed;
  rates.decode /= change.speed;
  rates.bytes_per_second *= change.link;
  return rates;
}

// ---- workers

void World::add_worker(std::optional<size_t> place) {
  const WorkerRates rates = place ? cluster_.workers[*place].rates : local_rates();
  const feed::WorkerId id =
      coordinator_.add_worker({.name = place ? cluster_.workers[*place].name : "local",
                               .local = !place,
                               .runs_stems = rates.stems,
                               .memory = rates.memory,
                               .leases = rates.leases},
                              now());
  const uint32_t leases = place ? rates.leases : std::max(2u, job_.micro_batches);
  const uint32_t asked_at_once = place ? feed::kAskedAtOnce : 1;
  peers_[id] = {.model = std::make_unique<WorkerModel>(job_, rates, leases, asked_at_once),
                .place = place};
  if (place) joined_[*place] = id;
  flush(id);
  post_outbox();
}

void World::lose_worker(size_t place) {
  const auto found = joined_.find(place);
  if (found == joined_.end()) return;
  const feed::WorkerId id = found->second;
  joined_.erase(found);
  peers_.erase(id);
  coordinator_.lose_worker(id, now());
  post_outbox();
}

void World::begin_step(uint64_t step) {
  for (size_t place = 0; place < cluster_.workers.size(); ++place) {
    const SimulatedWorker& worker = cluster_.workers[place];
    if (worker.joins == step) add_worker(place);
    if (worker.leaves == step) lose_worker(place);
    const auto id = joined_.find(place);
    if (!worker.change || worker.change->step != step || id == joined_.end()) continue;
    Peer& peer = peers_.at(id->second);
    peer.model->set_rates(changed(worker.rates, *worker.change));
    if (peer.at_work) end_with_part(id->second, peer);
  }
  if (cluster_.change && cluster_.change->step == step) change_server(*cluster_.change);
}

void World::change_server(const RateChange& change) {
  server_ = changed(cluster_.server, change);
  for (auto& entry : peers_) {
    if (!entry.second.place) entry.second.model->set_rates(local_rates());
  }
}

std::map<size_t, WorkerRates> World::rates() const {
  std::map<size_t, WorkerRates> rates;
  for (const auto& [place, id] : joined_) rates.emplace(place, peers_.at(id).model->rates());
  return rates;
}

void World::start_work(feed::WorkerId id) {
  Peer& peer = peers_.at(id);
  if (peer.at_work && peer.at_work->parts == 1) return;
  const auto next = peer.model->next();
  if (peer.at_work) {
    if (!next || !next->continues(*peer.at_work)) end_with_part(id, peer);
    return;
  }
  peer.at_work = next;
  if (next) begin_work(id, peer);
}

void World::begin_work(feed::WorkerId id, Peer& peer) {
  WorkerModel::Piece& piece = *peer.at_work;
  if (!peer.place) {
    piece.parts = 1;
    (server_.shared ? device_ : local_cores_).start(jittered(piece.seconds), [this, id] {
      finish_work(id);
    });
    return;
  }
  double seconds = 0;
  for (int i = 0; i < piece.parts; ++i) seconds += jittered(piece.seconds);
  peer.since = now();
  peer.part = seconds / piece.parts;
  peer.delay = std::max(0.0, to_seconds(peer.link_works - now()));
  settle_end(id, peer);
}

void World::settle_end(feed::WorkerId id, Peer& peer) {
  const TimePoint end = peer.since + from_seconds(peer.at_work->parts * peer.part + peer.delay);
  events_.at(end, [this, id, number = ++peer.ends] {
    const auto found = peers_.find(id);
    if (found != peers_.end() && found->second.ends == number) finish_work(id);
  });
}

void World::end_with_part(feed::WorkerId id, Peer& peer) {
  WorkerModel::Piece& piece = *peer.at_work;
  const double passed = std::max(0.0, to_seconds(now() - peer.since) - peer.delay);
  const int begun = 1 + static_cast<int>(peer.part > 0 ? passed / peer.part : 0);
  if (begun >= piece.parts) return;
  piece.parts = begun;
  settle_end(id, peer);
}

void World::finish_work(feed::WorkerId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  peer.model->done(*peer.at_work);
  peer.at_work.reset();
  flush(id);
  start_work(id);
}

// ---- the device

void World::run_device(double seconds) {
  bool done = false;
  device_.start(jittered(seconds), [&done] { done = true; });
  while (!done) events_.run_one();
}

World::Origin World::origin(uint64_t step, uint32_t index, bool gradient) const {
  const feed::WorkItem& item = coordinator_.ledger().steps().at(step).at(index);
  Origin origin;
  if (!item.source) return origin;
  const auto peer = peers_.find(item.source->worker);
  if (peer == peers_.end()) return origin;
  const WorkerRates& rates = peer->second.model->rates();
  const CutCosts& cut = costs_of(item.cut);
  feed::Delivery& delivery = origin.delivery;
  origin.worker = peer->second.place;
  delivery.decode = rates.decode;
  if (item.cut > 0)
    delivery.stem = (gradient ? cut.stem_backward : cut.stem_forward) / rates.stem_speed;
  delivery.in_step = gradient || (item.stem_trains && job_.staleness == 0);
  if (!origin.worker) return origin;
  const double bytes = gradient        ? cut.gradients + cut.weights
                       : item.cut == 0 ? job_.pixels
                                       : cut.activations;
  delivery.link = bytes / rates.bytes_per_second + (gradient ? 2 : 1) * rates.latency;
  if (delivery.in_step) delivery.weights = cut.weights / rates.bytes_per_second + rates.latency;
  return origin;
}

}  // namespace outrigger::training
