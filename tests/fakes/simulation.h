#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event_queue.h"
#include "common/memory_source.h"
#include "common/random.h"
#include "common/thread_pool.h"
#include "data/sample.h"
#include "feed/coordinator.h"
#include "feed/feed.h"
#include "nn/graph.h"
#include "nn/program.h"
#include "training/trainer/trainer.h"
#include "worker/protocol/protocol.h"
#include "worker/work/agent.h"

namespace outrigger::fakes {

/// Pixels that depend on the sample and the slot alone, as augmented images do. The sample's path
/// says how it behaves: "broken…" is no image in any slot, "damaged…" is none in odd slots, as
/// where the damage lies in a part that few crops show.
class SyntheticPixels final : public worker::PixelSource {
 public:
  Duration make(const feed::LeaseSample& sample, bool evaluation,
                std::span<std::byte> pixels) override;
  /// The next so many reads fail.
  int failing_reads = 0;
  bool tells_no_images = true;  // else nobody hears that "broken…" is none in other slots, too
};

struct SimulationOptions {
  uint64_t seed = 1;      // of what happens, not of the training
  int first_workers = 2;  // at the start, besides the local one
  int most_workers = 4;
  double faults = 0.0;      // chance of a fault at each event
  double slow = 0.0;        // chance that a piece of work takes very long
  double duplicates = 0.0;  // chance that a message arrives twice
  bool change_plans = false;
  std::vector<feed::Plan> plans;  // to choose from; the first is the first plan
  /// Dies when the trainer wants this step (a resume follows); absent: runs to the end.
  std::optional<uint64_t> server_dies_at;
  bool workers_that_only_decode = false;  // some workers compute differently
  bool tells_no_images = true;            // SyntheticPixels'
  /// Messages become frames on their way, and are read as either side does; absent: they arrive as
  /// they are.
  struct Wires {
    worker::WireContext server;
    worker::WireContext worker;
  };
  std::optional<Wires> wires = {};
  std::shared_ptr<MemorySource> received_into = {};  // at the server
};

/// What a simulation provoked: (state of the work, fault) to count.
using Provoked = std::map<std::pair<std::string, std::string>, uint64_t>;

/// A server and its workers in one thread and in virtual time: the real coordinator, trainer and
/// agents, links with random delays, work with random durations, and deaths, duplicates, late
/// results, new workers and new plans at random moments. The trainer's blocking calls run the world
/// until they have an answer.
class Simulation final : public feed::Feed, public Clock {
 public:
  struct World {
    const nn::Graph* graph = nullptr;
    const nn::Backend* backend = nullptr;
    const data::Dataset* dataset = nullptr;
    worker::AgentOptions agent;
    feed::CoordinatorOptions coordinator;
    feed::OrderOptions order;
  };

  Simulation(World world, SimulationOptions options, Provoked* provoked);

  // Feed
  feed::Plan plan_of(uint64_t step) override;
  void set_plan(const feed::Plan& plan) override;
  void publish_stem(uint64_t version, std::shared_ptr<const std::vector<float>> parameters,
                    std::shared_ptr<const std::vector<float>> buffers) override;
  feed::ReadyMicroBatch take(uint64_t step, uint32_t index) override;
  std::optional<feed::ReadyMicroBatch> take_if_there(uint64_t step, uint32_t index) override;
  void head_done(uint64_t step, uint32_t index,
                 std::shared_ptr<const Tensor> cut_gradient) override;
  std::shared_ptr<const std::vector<float>> take_gradient(uint64_t step, uint32_t index) override;
  std::vector<feed::AuditItem> commit(uint64_t step) override;
  std::vector<uint32_t> broken_samples() override;
  uint32_t begin_evaluation(const data::Dataset& dataset, uint32_t batch) override;
  feed::ReadyMicroBatch take_evaluation(uint32_t index) override;
  void end_evaluation() override;
  // Clock
  TimePoint now() const override { return events_.now(); }

  const feed::Coordinator& coordinator() const { return coordinator_; }
  SyntheticPixels& pixels() { return pixels_; }
  /// Floats of each version of the stem that was published.
  const std::map<uint64_t, size_t>& published() const { return published_; }
  /// A plan for the trainer to set before the next step, if the world wants one.
  std::optional<feed::Plan> wanted_plan();

 private:
  struct Peer {
    feed::WorkerId id = 0;
    std::unique_ptr<worker::Agent> agent;
    TimePoint to_worker;  // when the newest message in each direction arrives: links keep order
    TimePoint to_server;
    bool busy = false;
    bool local = false;
    bool frozen = false;  // stopped, as by SIGSTOP: holds its leases and answers nothing
  };

  Duration random_delay(int most_microseconds);
  bool chance(double probability) { return random_.uniform() < static_cast<float>(probability); }
  void add_worker(bool local);
  void kill(feed::WorkerId id, const std::string& fault);
  void count_states_of(feed::WorkerId id, const std::string& fault);
  void maybe_fault();
  void deliver_to_worker(feed::WorkerId id, feed::ServerMessage message);
  void deliver_to_server(feed::WorkerId id, feed::WorkerMessage message);
  void flush(feed::WorkerId id);
  void start_work(feed::WorkerId id);
  void post_outbox();
  void run_one_event();
  template <typename Answer>
  auto wait_for(const Answer& answer);

  World world_;
  SimulationOptions options_;
  Provoked* provoked_;
  RandomStream random_;
  EventQueue events_;
  feed::Coordinator coordinator_;
  ThreadPool threads_{1};
  SyntheticPixels pixels_;
  std::map<feed::WorkerId, Peer> peers_;
  std::map<uint64_t, size_t> published_;
  uint64_t next_plan_ = 2;
};

}  // namespace outrigger::fakes
