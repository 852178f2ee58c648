#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/processor_clock.h"
#include "feed/coordinator.h"
#include "feed/feed.h"
#include "feed/stall.h"
#include "gpu-server/planning/worker_book.h"
#include "gpu-server/report/timeline.h"
#include "telemetry/trace.h"
#include "transport/link.h"
#include "worker/protocol/protocol.h"

namespace outrigger::gpu_server {

class WorkerSession;

/// What a worker must show before it gets work, and bring then.
struct JoinTerms {
  worker::Setup setup;
  Sha256 probe{};             // what the bytes of setup.probe hash to
  std::string numerics;       // the server's own fingerprint; empty: no stems go out
  int64_t micro_batch = 1;    // samples
  double pixels = 0;          // bytes of a micro-batch of them
  double scoring_memory = 0;  // bytes to run the whole network in inference
  feed::Crossings crossings;  // what its results must be
};

/// What the feed is doing, for people.
struct FeedSnapshot {
  size_t workers = 0;       // remote ones that have joined
  size_t stem_workers = 0;  // of these, given stems of the newest plan
  std::vector<std::string> worker_names;
  uint64_t second_leases = 0;
  uint64_t dropped_results = 0;
  uint64_t replaced_samples = 0;
  uint64_t bytes_in = 0;  // over links with remote workers since the run began
  uint64_t bytes_out = 0;
};

/// The coordinator behind one lock, sessions with workers around it, and a trainer that waits in
/// front. Thread-safe.
class ServerFeed final : public feed::Feed {
 public:
  /// `clock` and `trace`, which gets the trainer's waits and what everyone works on, must outlive
  /// this.
  ServerFeed(feed::Coordinator coordinator, JoinTerms terms, worker::WireContext context,
             const Clock& clock, telemetry::Trace& trace);
  ~ServerFeed() override;

  /// Opens a link that came in: introduces, checks and then works with it on threads of its own.
  /// Returns at once. Throws IoError where there is no thread for it; the link is closed then.
  void serve(std::unique_ptr<transport::Link> link);
  /// Works with the server's own worker, which needs no introduction. `worker`: its thread's.
  void serve_local(std::unique_ptr<transport::Link> link, const ProcessorClock& worker);
  /// The server's own worker has ended with this: where no other is left, the trainer's calls throw
  /// it, InvalidInput as Error, instead of waiting. Any thread.
  void fail_local(std::exception_ptr failure);
  /// From now on the trainer's calls throw Cancelled.
  void cancel();
  /// Tells all workers that the work is over (or to come again) and ends their sessions, within
  /// about two seconds.
  void say_farewell(const feed::Farewell& farewell);
  FeedSnapshot snapshot();
  /// Removes sessions that are over.
  void reap();
  std::vector<feed::Replacement> replacements();
  /// What was measured of the remote workers, and of the local one.
  struct Measures {
    std::vector<WorkerMeasures> workers;
    WorkerMeasures local;
  };
  Measures measures();
  /// Seconds that the trainer has waited since the last call, by cause.
  feed::StallTimes take_stalls();
  /// What the own worker's thread has had of processors while the trainer waited.
  Duration own_work_in_waits() const { return own_work_in_waits_.load(); }
  /// How many pieces the trainer has got: grows as long as the run goes on.
  uint64_t handed_out() const { return handed_out_; }
  /// What the trainer waits for, and who has promised it.
  std::string describe_wait();

  // feed::Feed
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

  // Evaluation beside training: feed::Coordinator's, without waiting but for wait_for_scores.
  void begin_scoring(feed::ScoringOptions options);
  /// True when all is done; false where no worker is left to do it. Throws as a Feed does.
  bool wait_for_scores();
  /// The part that is done, 0 to 1.
  double scored();
  std::vector<feed::Scoring::Batch> end_scoring();
  size_t scorers();

 private:
  friend class WorkerSession;
  feed::WorkerId add_worker(const feed::WorkerTraits& traits, WorkerSession& session,
                            const WorkerBook& book);
  void lose_worker(feed::WorkerId worker);
  /// One line about what a worker held that leaves or is lost, if anything; the lock is held.
  void tell_what_is_given_back(feed::WorkerId worker);
  /// One line about the newest of its failed reads, if the last is a while ago; the lock is held.
  void tell_of_failed_read(feed::WorkerId worker, const feed::ReadFailed& failed);
  void receive(feed::WorkerId worker, feed::WorkerMessage message);
  const JoinTerms& terms() const { return terms_; }
  const worker::WireContext& context() const { return context_; }

  /// Hands the coordinator's outbox to the sessions; the lock is held.
  /// `caller`: whose thread this is, and who sends at once what is for it.
  void distribute(const WorkerSession* caller = nullptr);
  /// What the trainer waits for; a micro-batch of an evaluation has no step.
  struct Wanted {
    const char* what;
    std::optional<uint64_t> step;
    uint32_t index;
    bool device = false;  // which works on it when it has come
  };
  template <typename Answer>
  auto wait_for(const Wanted& wanted, const Answer& answer);
  /// Finds what the trainer has waited for; the lock is held.
  void note_wait(const Wanted& wanted, Duration waited);
  /// Of a worker that has joined; the lock is held.
  WorkerMeasures measures_of(feed::WorkerId worker) const;
  struct Traffic {
    uint64_t in = 0;
    uint64_t out = 0;
    void add(const transport::LinkStats& link) {
      in += link.bytes_received;
      out += link.bytes_sent;
    }
  };

  const JoinTerms terms_;
  const worker::WireContext context_;
  const Clock& clock_;
  telemetry::Trace& trace_;
  Timeline timeline_;  // under mutex_
  std::atomic<uint64_t> handed_out_{0};
  std::optional<ProcessorClock> own_worker_;
  std::exception_ptr own_failure_;  // under mutex_
  std::atomic<Duration> own_work_in_waits_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  feed::Coordinator coordinator_;
  std::list<std::unique_ptr<WorkerSession>> sessions_;
  std::map<feed::WorkerId, WorkerSession*> joined_;
  std::map<feed::WorkerId, WorkerBook> books_;
  struct FailedReads {
    std::optional<TimePoint> told_at;
    uint64_t untold = 0;
  };
  std::map<feed::WorkerId, FailedReads> failed_reads_;
  Traffic past_traffic_;  // over links that are gone
  std::optional<Wanted> wanted_;
  feed::StallTimes stalls_{};
  bool cancelled_ = false;
  bool closing_ = false;
};

}  // namespace outrigger::gpu_server
