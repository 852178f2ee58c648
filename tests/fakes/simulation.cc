#include "tests/fakes/simulation.h"

#include <algorithm>
#include <cstring>

#include "common/error.h"
#include "data/decode.h"

namespace outrigger::fakes {

using feed::WorkerId;

Duration SyntheticPixels::make(const feed::LeaseSample& sample, bool evaluation,
                               std::span<std::byte> pixels) {
  if (failing_reads > 0) {
    --failing_reads;
    throw IoError("reading " + sample.sample.path + ": simulated");
  }
  const std::string& path = sample.sample.path;
  const bool broken = path.find("broken") != std::string::npos;
  const bool damaged = path.find("damaged") != std::string::npos && sample.slot % 2 == 1;
  if (broken && tells_no_images) throw data::NoImage(path + " is no image");
  if (broken || damaged) throw data::BrokenImage(path + " is no image");
  RandomStream random(sample.id + 1000, RandomUse::kSyntheticData,
                      evaluation ? 0 : sample.slot + 1);
  for (std::byte& pixel : pixels) pixel = static_cast<std::byte>(random.next_u32() & 255u);
  return Duration{0};
}

Simulation::Simulation(World world, SimulationOptions options, Provoked* provoked)
    : world_(std::move(world)),
      options_(std::move(options)),
      provoked_(provoked),
      random_(options_.seed, RandomUse::kSyntheticData, 77),
      coordinator_(world_.coordinator, feed::SampleOrder(world_.order), *world_.dataset,
                   options_.plans.front()) {
  pixels_.tells_no_images = options_.tells_no_images;
  add_worker(true);
  for (int i = 0; i < options_.first_workers; ++i) add_worker(false);
  events_.after(std::chrono::milliseconds(50), [this] { coordinator_.tick(now()); });
}

Duration Simulation::random_delay(int most_microseconds) {
  return std::chrono::microseconds(1 + random_.below(static_cast<uint32_t>(most_microseconds)));
}

void Simulation::add_worker(bool local) {
  const bool stems = local || !options_.workers_that_only_decode || !chance(0.5);
  const WorkerId id = coordinator_.add_worker({local ? "local" : "worker", local, stems}, now());
  Peer peer;
  peer.id = id;
  peer.local = local;
  peer.agent = std::make_unique<worker::Agent>(world_.agent, *world_.graph, *world_.backend,
                                               threads_, pixels_);
  peers_[id] = std::move(peer);
  flush(id);
  post_outbox();
}

void Simulation::count_states_of(WorkerId id, const std::string& fault) {
  if (provoked_ == nullptr) return;
  for (const auto& [state, count] : coordinator_.ledger().held_by(id))
    (*provoked_)[{to_string(state), fault}] += count;
}

void Simulation::kill(WorkerId id, const std::string& fault) {
  count_states_of(id, fault);
  peers_.erase(id);
  coordinator_.lose_worker(id, now());
  post_outbox();
}

void Simulation::maybe_fault() {
  if (!chance(options_.faults)) return;
  std::vector<WorkerId> remote;
  for (const auto& peer : peers_) {
    if (!peer.second.local) remote.push_back(peer.first);
  }
  const uint32_t kind = random_.below(5);
  if (kind == 0 && static_cast<int>(remote.size()) < options_.most_workers) {
    add_worker(false);
    return;
  }
  if (remote.empty()) return;
  const WorkerId victim = remote[random_.below(static_cast<uint32_t>(remote.size()))];
  switch (kind) {
    case 1:
    case 2:
      kill(victim, "death");
      break;
    case 3: {  // stopped; its link is only given up much later
      count_states_of(victim, "stop");
      peers_.at(victim).frozen = true;
      events_.after(std::chrono::seconds(5), [this, victim] {
        if (peers_.contains(victim)) kill(victim, "death");
      });
      break;
    }
    case 4:
      if (chance(0.3)) {
        pixels_.failing_reads = 1;
      } else {
        count_states_of(victim, "leave");
        deliver_to_server(victim, feed::Leaving{});
        events_.after(random_delay(3000), [this, victim] {
          if (peers_.contains(victim)) kill(victim, "death");
        });
      }
      break;
    default:
      break;
  }
}

namespace {

/// As a link hands it out.
transport::ReceivedFrame travelled(const transport::Frame& frame, MemorySource* memory) {
  transport::ReceivedFrame received{frame.type, frame.lane, frame.message, {}};
  for (const auto& payload : frame.payloads) {
    Tensor bytes(ElementType::kUint8, {static_cast<int64_t>(payload.bytes.size())}, memory);
    std::ranges::copy(payload.bytes, bytes.view().data);
    received.payloads.push_back(transport::Payload::of(std::move(bytes)));
  }
  return received;
}

}  // namespace

void Simulation::deliver_to_worker(WorkerId id, feed::ServerMessage message) {
  if (options_.wires) {
    const auto frame = travelled(worker::to_frame(message, options_.wires->server), nullptr);
    message = worker::read_server_message(frame, options_.wires->worker);
  }
  Peer& peer = peers_.at(id);
  peer.to_worker = std::max(peer.to_worker, now() + random_delay(2000));
  events_.at(peer.to_worker, [this, id, message = std::move(message)] {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    found->second.agent->receive(message);
    start_work(id);
  });
}

void Simulation::deliver_to_server(WorkerId id, feed::WorkerMessage message) {
  if (options_.wires) {
    const auto frame =
        travelled(worker::to_frame(message, options_.wires->worker), options_.received_into.get());
    message = worker::read_worker_message(frame, options_.wires->server);
  }
  // A pull that arrived twice would only ask for more; results are what must not count twice.
  const bool result = !std::holds_alternative<feed::Pull>(message);
  Peer& peer = peers_.at(id);
  peer.to_server = std::max(peer.to_server, now() + random_delay(2000));
  const auto arrive = [this, id, message = std::move(message)] {
    if (!peers_.contains(id)) return;
    coordinator_.receive(id, message, now());
    post_outbox();
  };
  events_.at(peer.to_server, arrive);
  if (result && chance(options_.duplicates)) {
    if (provoked_ != nullptr) count_states_of(id, "duplicate");
    events_.at(peer.to_server + random_delay(30000), arrive);
  }
}

void Simulation::flush(WorkerId id) {
  for (auto& message : peers_.at(id).agent->take_outbox())
    deliver_to_server(id, std::move(message));
}

// The work is done at its end, so that a worker that dies on the way has done nothing.
void Simulation::start_work(WorkerId id) {
  Peer& peer = peers_.at(id);
  if (peer.busy) return;
  peer.busy = true;
  const bool slow = chance(options_.slow);
  if (slow) count_states_of(id, "late");
  events_.after(slow ? random_delay(3'000'000) : random_delay(4000), [this, id] {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    if (found->second.frozen) return;
    found->second.busy = false;
    const bool worked = found->second.agent->work();
    flush(id);
    if (worked) start_work(id);
  });
}

void Simulation::post_outbox() {
  for (auto& out : coordinator_.take_outbox()) {
    if (peers_.contains(out.to)) deliver_to_worker(out.to, std::move(out.message));
  }
}

void Simulation::run_one_event() {
  constexpr Duration kTick = std::chrono::milliseconds(50);
  if (events_.next() - now() > kTick) {  // ticks go on while nothing else happens
    events_.advance_to(now() + kTick);
  } else {
    events_.run_one();
  }
  coordinator_.tick(now());
  maybe_fault();
  post_outbox();
}

template <typename Answer>
auto Simulation::wait_for(const Answer& answer) {
  const TimePoint give_up = now() + std::chrono::hours(1);
  while (true) {
    auto result = answer();
    post_outbox();
    if (result) return result;
    ensure(now() < give_up, "the trainer waits for ever");
    if (events_.empty()) events_.after(std::chrono::milliseconds(50), [] {});
    run_one_event();
  }
}

// ---- Feed

feed::Plan Simulation::plan_of(uint64_t step) {
  feed::Plan plan = coordinator_.plan_of(step, now());
  post_outbox();
  return plan;
}

void Simulation::set_plan(const feed::Plan& plan) { coordinator_.set_plan(plan); }

std::optional<feed::Plan> Simulation::wanted_plan() {
  if (!options_.change_plans || !chance(0.4)) return std::nullopt;
  feed::Plan plan = options_.plans[random_.below(static_cast<uint32_t>(options_.plans.size()))];
  plan.number = next_plan_++;
  return plan;
}

void Simulation::publish_stem(uint64_t version,
                              std::shared_ptr<const std::vector<float>> parameters,
                              std::shared_ptr<const std::vector<float>> buffers) {
  published_[version] = parameters->size();
  coordinator_.publish_stem(version, std::move(parameters), std::move(buffers), now());
  post_outbox();
}

feed::ReadyMicroBatch Simulation::take(uint64_t step, uint32_t index) {
  if (options_.server_dies_at == step && chance(0.3)) throw Cancelled("the server dies");
  return std::move(*wait_for([&] { return coordinator_.try_take(step, index, now()); }));
}

std::optional<feed::ReadyMicroBatch> Simulation::take_if_there(uint64_t step, uint32_t index) {
  if (!coordinator_.ledger().has_result(step, index)) return std::nullopt;
  return coordinator_.try_take(step, index, now());
}

void Simulation::head_done(uint64_t step, uint32_t index,
                           std::shared_ptr<const Tensor> cut_gradient) {
  coordinator_.head_done(step, index, std::move(cut_gradient), now());
  post_outbox();
  for (uint32_t i = random_.below(6); i > 0 && !events_.empty(); --i) run_one_event();
}

std::shared_ptr<const std::vector<float>> Simulation::take_gradient(uint64_t step, uint32_t index) {
  return wait_for([&] { return coordinator_.try_take_gradient(step, index, now()); });
}

std::vector<feed::AuditItem> Simulation::commit(uint64_t step) {
  auto audit = coordinator_.commit(step, now());
  post_outbox();
  return audit;
}

std::vector<uint32_t> Simulation::broken_samples() {
  std::vector<uint32_t> ids;
  for (const auto& broken : coordinator_.broken()) ids.push_back(broken.first);
  return ids;
}

uint32_t Simulation::begin_evaluation(const data::Dataset& dataset, uint32_t batch) {
  coordinator_.begin_evaluation(dataset, batch);
  return coordinator_.evaluation_batches();
}

feed::ReadyMicroBatch Simulation::take_evaluation(uint32_t index) {
  return std::move(*wait_for([&] { return coordinator_.try_take_evaluation(index, now()); }));
}

void Simulation::end_evaluation() { coordinator_.end_evaluation(); }

}  // namespace outrigger::fakes
