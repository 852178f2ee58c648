#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/event_queue.h"
#include "common/flat_map.h"
#include "common/random.h"
#include "feed/coordinator.h"
#include "training/simulator/cluster.h"
#include "training/simulator/processor.h"
#include "training/simulator/worker_model.h"

namespace outrigger::training {

/// The coordinator, its workers, links and the server's cores in virtual time. The trainer's loop
/// (simulate.cc) asks and lets the world go on until it has its answer. Not thread-safe.
class World {
 public:
  /// References must outlive this.
  World(const JobCosts& job, const SimulatedCluster& cluster, const SimulationOptions& options,
        const feed::Plan& first_plan, const data::Dataset& dataset);

  feed::Coordinator& coordinator() { return coordinator_; }
  TimePoint now() const { return events_.now(); }
  /// Sends the coordinator's messages; call after each call of it.
  void post_outbox();
  /// Lets the world go on until `answer` gives something that is not empty.
  template <typename Answer>
  auto wait_for(const Answer& answer) {
    while (true) {
      auto result = answer();
      post_outbox();
      if (result) return result;
      events_.run_one();
    }
  }
  /// The device works for so many seconds (alone on its cores).
  void run_device(double seconds);

  /// Workers that join, leave or change at this step do so now.
  void begin_step(uint64_t step);
  /// Of the remote workers that are there, by their place in the cluster.
  std::map<size_t, WorkerRates> rates() const;
  size_t workers() const { return joined_.size(); }
  const ServerRates& server() const { return server_; }
  /// How the newest forward result of an item came about, or its stem gradient; by whom: a place
  /// in the cluster, nothing for the local worker.
  struct Origin {
    feed::Delivery delivery;
    std::optional<size_t> worker;
  };
  Origin origin(uint64_t step, uint32_t index, bool gradient) const;
  std::vector<uint64_t> micro_batches() const { return micro_batches_; }

 private:
  /// One direction of a link.
  struct Way {
    TimePoint free{};
  };
  struct Peer {
    std::unique_ptr<WorkerModel> model;
    std::optional<size_t> place;  // in the cluster; nothing: the local worker
    std::optional<WorkerModel::Piece> at_work;
    TimePoint since{};  // when it began with that
    double part = 0;    // seconds that each of its parts takes
    double delay = 0;   // seconds that its link takes of its cores meanwhile
    uint64_t ends = 0;  // how often it was settled when that ends: earlier ends no longer count
    TimePoint link_works{};  // until then, where nothing else is at work
    Way to_server;
    Way to_worker;
  };
  void add_worker(std::optional<size_t> place);
  void lose_worker(size_t place);
  void change_server(const RateChange& change);
  WorkerRates local_rates() const {
    return {.stem_speed = server_.shared ? server_.cores : server_.own_cores * server_.stem_part,
            .decode = server_.decode};
  }
  void tick();
  void start_work(feed::WorkerId id);
  /// Begins with the piece, which is there.
  void begin_work(feed::WorkerId id, Peer& peer);
  void settle_end(feed::WorkerId id, Peer& peer);
  /// Ends what a worker is at with the present part.
  void end_with_part(feed::WorkerId id, Peer& peer);
  void finish_work(feed::WorkerId id);
  void flush(feed::WorkerId id);
  /// `frames` that it makes: 1 or, if it goes with the one before, 0.
  void deliver(feed::WorkerId id, feed::ServerMessage message, double frames);
  void take_at_worker(feed::WorkerId id, feed::ServerMessage message, double work);
  /// Gives a link's work, core-seconds, to the cores of one of its ends; to a worker's it comes
  /// beside what these are at.
  template <typename Then>
  void work_at_server(double seconds, Then then);
  void work_at_worker(feed::WorkerId id, double seconds);
  TimePoint sent(Peer& peer, Way& way, Way& card, double bytes) const;
  double bytes_of(const feed::ServerMessage& message) const;
  double bytes_of(const feed::WorkerMessage& message) const;
  double packing_of(const feed::ServerMessage& message) const;
  double packing_of(const feed::WorkerMessage& message) const;
  /// Core-seconds at each end of the link, for a message that makes so many frames.
  template <typename Message>
  double link_work(const Message& message, double frames) const;
  const CutCosts& costs_of(int32_t cut) const;
  double jittered(double seconds);

  const JobCosts& job_;
  const SimulatedCluster& cluster_;
  ServerRates server_;  // as they are now
  const SimulationOptions& options_;
  RandomStream random_;
  EventQueue events_;
  feed::Coordinator coordinator_;
  Processor device_;
  Processor local_cores_;
  Way card_in_;
  Way card_out_;
  FlatMap<feed::WorkerId, Peer> peers_;
  std::map<size_t, feed::WorkerId> joined_;  // by place
  std::vector<uint64_t> micro_batches_;
  // What is being sent; kept for its memory.
  std::vector<feed::WorkerMessage> from_worker_;
  std::vector<feed::Outgoing> from_server_;
};

}  // namespace outrigger::training
