#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/flat_map.h"
#include "common/tensor.h"
#include "data/sample.h"
#include "feed/coordinator_options.h"
#include "feed/crossing.h"
#include "feed/latency.h"
#include "feed/ledger.h"
#include "feed/messages.h"
#include "feed/order.h"
#include "feed/plan.h"
#include "feed/results.h"
#include "feed/scoring.h"

namespace outrigger::feed {

/// The server's half of the feed: draws steps, leases micro-batches to workers, keeps the ledger,
/// and answers the trainer. Event-driven and without threads, sockets or clocks of its own: calls
/// come in (with the time), messages for workers collect in an outbox. Not thread-safe: the owner
/// holds one lock around it.
class Coordinator {
 public:
  /// `dataset` must outlive this.
  Coordinator(CoordinatorOptions options, SampleOrder order, const data::Dataset& dataset,
              Plan first_plan);

  // ---- workers
  /// What results must be, at every cut that plans may have; until then they may be anything with
  /// the right number of samples.
  void expect(Crossings crossings) { crossings_ = std::move(crossings); }
  WorkerId add_worker(WorkerTraits traits, TimePoint now);
  /// The worker died, left, or its link closed; may be called more than once.
  void lose_worker(WorkerId worker, TimePoint now);
  /// A result nobody waits for any more is dropped. Throws InvalidInput when a worker breaks the
  /// protocol.
  void receive(WorkerId worker, WorkerMessage message, TimePoint now);
  /// Second leases for what is late, and set-aside workers come back. Call a few times a second.
  void tick(TimePoint now);
  std::vector<Outgoing> take_outbox();
  /// Puts them in the place of what `messages` holds, whose memory the outbox goes on with.
  void take_outbox(std::vector<Outgoing>& messages);

  // ---- the trainer
  /// Throws what failed the job, if anything did.
  void throw_if_failed() const;
  /// The plan for steps that are not drawn yet; must have a larger number.
  void set_plan(const Plan& plan);
  const Plan& newest_plan() const { return plan_; }
  /// The plan of a step, which is drawn by this call if it was not. The present step or the next.
  const Plan& plan_of(uint64_t step, TimePoint now);
  /// The stem that workers run from now on: version `version` of parameters and running averages
  /// (whole arenas).
  void publish_stem(uint64_t version, std::shared_ptr<const std::vector<float>> parameters,
                    std::shared_ptr<const std::vector<float>> buffers, TimePoint now);
  /// The micro-batch if it is there; otherwise notes that the trainer waits for it. Throws what
  /// failed the job.
  std::optional<ReadyMicroBatch> try_take(uint64_t step, uint32_t index, TimePoint now);
  /// For micro-batches with a trained stem away: hands over the gradient at the cut.
  void head_done(uint64_t step, uint32_t index, std::shared_ptr<const Tensor> cut_gradient,
                 TimePoint now);
  std::shared_ptr<const std::vector<float>> try_take_gradient(uint64_t step, uint32_t index,
                                                              TimePoint now);
  /// The step is done; returns what filled it.
  std::vector<AuditItem> commit(uint64_t step, TimePoint now);

  // ---- evaluation: work at cut 0 on another data set, in its own order, by whoever has room
  /// `dataset` must outlive the evaluation. One evaluation at a time.
  void begin_evaluation(const data::Dataset& dataset, uint32_t batch);
  uint32_t evaluation_batches() const;
  /// Batches come in order; a sample that is broken is left out of its batch. Throws Cancelled
  /// where evaluations are to stop, and what failed the job.
  std::optional<ReadyMicroBatch> try_take_evaluation(uint32_t index, TimePoint now);
  void end_evaluation();

  // ---- evaluation beside training: remote workers that run stems run the whole network
  /// `options.number` and `incarnation` are filled in. One evaluation at a time, of either kind.
  void begin_scoring(ScoringOptions options, TimePoint now);
  /// Null where none is under way.
  const Scoring* scoring() const { return scoring_ ? &*scoring_ : nullptr; }
  /// What came of it, whether it is done or not.
  std::vector<Scoring::Batch> end_scoring();
  /// Workers that could take part.
  size_t scorers() const;

  // ---- what a person may ask
  /// Samples that were broken in some slot, with why; those known from the run before, too.
  const std::map<uint32_t, std::string>& broken() const { return broken_; }
  const std::vector<Replacement>& replacements() const { return replacements_; }
  const Ledger& ledger() const { return ledger_; }
  size_t workers() const { return workers_.size(); }
  /// Remote workers that are given stems of the newest plan, where it has any away: who may run
  /// them and has the memory.
  size_t stem_workers() const;
  bool has_worker(WorkerId worker) const { return workers_.contains(worker); }
  uint64_t present_step() const { return step_; }
  uint64_t second_leases() const { return second_leases_; }
  uint64_t dropped_results() const { return dropped_; }

 private:
  struct Worker {
    WorkerTraits traits;
    int64_t appetite = 0;  // leases it has room for; below 0 where urgent work was put on top
    uint64_t turn = 0;     // among equals the least is first; who gets a lease is behind the others
    bool leaves = false;   // gets no work any more
    std::optional<TimePoint> set_aside_until;
    std::optional<TimePoint> no_evaluation_until;
    Duration no_evaluation{};                // how long that was, when it was last
    std::map<uint64_t, int32_t> stems_sent;  // version to deepest cut sent
    double pace = 0;                       // seconds a micro-batch while it has work; 0: not known
    std::optional<TimePoint> busy_since;   // its last result, or the lease that ended its idleness
    uint32_t leases = 0;                   // that wait for a result; by count_leases()
    std::optional<TimePoint> could_since;  // since when the first of them has its weights; likewise
    uint32_t kept = 0;  // items that wait for it to have room; counted anew by each round of leases
    /// Whether it is given another lease that is not urgent. Who has shown nothing yet may be slow:
    /// then it holds no more than one with few threads.
    bool has_room() const {
      return appetite > 0 && (pace > 0 || traits.leases <= kLeasesInHand || leases < kLeasesInHand);
    }
    /// Its appetite, as far as it is given what is not urgent.
    int64_t most_on_top() const { return has_room() ? appetite : std::min<int64_t>(appetite, 0); }
  };
  /// When a worker would be done with one lease more.
  struct Bid {
    WorkerId id = 0;
    Worker* worker = nullptr;
    double done_in = 0;  // seconds
    bool is_before(const Bid& other) const {
      return std::pair(done_in, worker->turn) < std::pair(other.done_in, other.worker->turn);
    }
    bool has_more_room(const Bid& other) const {
      const int64_t more = worker->most_on_top() - other.worker->most_on_top();
      return more > 0 || (more == 0 && worker->turn < other.worker->turn);
    }
  };
  struct Stem {
    std::shared_ptr<const std::vector<float>> parameters;
    std::shared_ptr<const std::vector<float>> buffers;
    TimePoint since;  // when it was published
  };

  void take_in(WorkerId from, const Pull& pull, TimePoint now);
  void take_in(WorkerId from, MicroBatch& result, TimePoint now);
  void take_in(WorkerId from, const StemGradient& result, TimePoint now);
  void take_in(WorkerId from, const Broken& broken, TimePoint now);
  void take_in(WorkerId from, const ReadFailed& failed, TimePoint now);
  void take_in(WorkerId from, const Leaving& leaving, TimePoint now);
  void take_in(WorkerId from, const Scores& scores, TimePoint now);

  /// Before the item is done again: training takes others, an evaluation leaves them out.
  void replace_broken(WorkItem& item, const Broken& broken);
  void leave_out(WorkItem& item, const Broken& broken);
  void keep_from_evaluations(Worker& worker, TimePoint now);
  void count_failed_read(WorkItem& item, const Worker& worker, const std::string& reason,
                         TimePoint now);

  void draw_step();
  double memory_for_stems(const Plan& plan) const;
  WorkItem make_item(uint64_t step, uint32_t index, const Plan& plan);
  /// The first of the slot's series behind `broken` of it that is not known as no image; `broken`
  /// becomes how many lie before it.
  LeaseSample sample_at(uint64_t slot, SlotTries& tries);
  uint64_t first_slot(uint64_t step, uint32_t index) const;
  uint64_t stem_version(uint64_t step, const Plan& plan) const;

  /// Leases all that can be leased now.
  void dispatch(TimePoint now);
  /// Sorts out what is missing: what nobody holds, and what is leased.
  void survey();
  /// By the last survey.
  bool anything_to_lease() const;
  /// Before each round over the items that are to be computed.
  void forget_kept();
  void lease_all(const std::vector<WorkItem*>& items, TimePoint now);
  /// Which workers have room for a lease.
  struct Vacancy {
    bool local = false;
    bool remote = false;
    bool remote_pixels = false;  // whether remote workers, with room or not, make any
    bool any() const { return local || remote; }
  };
  Vacancy vacancy() const;
  /// Whether nobody who has room would be given the item.
  bool is_out_of_reach(const WorkItem& item, const Vacancy& there_is) const;
  bool may_lease_now(const WorkItem& item) const;
  bool is_urgent(const WorkItem& item) const;
  /// Counts anew what each worker holds, by the last survey.
  void count_leases(TimePoint now);
  void lease_what_is_late(TimePoint now);
  /// The mean of the remote workers' whose pace is known; 0 where there are none.
  double mean_pace() const;
  /// A slow worker that nobody gives work to any more may have become faster meanwhile.
  void forget_old_paces(TimePoint now);
  /// Since when the weights that its stem takes are there; nothing while they are not.
  std::optional<TimePoint> weights_since(const WorkItem& item) const;
  uint64_t last_to_draw() const;
  void note_pace(WorkerId id, const WorkItem& item, uint32_t attempt, TimePoint now);
  /// For how long it has been at what it does; 0 where it has nothing to do.
  double busy(const Worker& worker, TimePoint now) const;
  /// Seconds until the worker would be done with one lease more.
  double done_in(const Worker& worker, TimePoint now) const;
  std::optional<WorkerId> choose_worker(const WorkItem& item, TimePoint now);
  bool eligible(WorkerId id, const Worker& worker, const WorkItem& item) const;
  /// Whether the local worker, or a remote one, could.
  bool can_take(const WorkItem& item, bool local) const;
  bool may_help(WorkerId local, const WorkItem& item) const;
  bool has_to_show(const Worker& worker, const WorkItem& item, TimePoint now) const;
  void lease_to(WorkerId worker, WorkItem& item, TimePoint now);
  void send_stem(WorkerId worker, const WorkItem& item);
  bool evaluations_stop() const;
  static bool can_score(const Worker& worker);
  void dispatch_scores();
  bool of_scoring(const WorkKey& key) const { return scoring_ && scoring_->is_mine(key); }
  void cancel(const std::vector<std::pair<WorkerId, WorkKey>>& attempts);
  void cancel(const WorkItem& item, const std::vector<Holder>& attempts);
  /// Before one of several is the first with an item: what the others are at now.
  void note_rivals(const WorkItem& item, TimePoint now);
  /// Another was faster.
  void overtaken(const WorkItem& item, const std::vector<Holder>& attempts, TimePoint now);
  void post(WorkerId to, ServerMessage message) { outbox_.push_back({to, std::move(message)}); }
  void note_needed(WorkItem& item, TimePoint now);
  bool is_late(const WorkItem& item, TimePoint now) const;
  ReadyMicroBatch ready(WorkItem& item) const;
  void check_bad_fraction();

  const CoordinatorOptions options_;
  SampleOrder order_;
  const data::Dataset& dataset_;
  Crossings crossings_;
  Plan plan_;
  std::map<uint64_t, Plan> step_plans_;
  Ledger ledger_;
  uint64_t step_;  // the first that is not committed
  uint64_t next_draw_;
  std::map<uint64_t, Stem> stems_;
  WorkerId next_worker_ = 1;
  // Every message goes through all of them: they lie side by side.
  FlatMap<WorkerId, Worker> workers_;
  uint64_t next_turn_ = 0;
  LatencyWindow forward_latency_;
  LatencyWindow backward_latency_;
  std::vector<Replacement> replacements_;
  std::vector<Outgoing> outbox_;
  std::optional<std::string> bad_data_;    // why the data failed the job
  std::optional<std::string> unreadable_;  // why reading failed the job
  std::map<uint32_t, std::string> broken_;
  std::unordered_set<uint32_t> no_images_;  // those of them that are broken in every slot
  std::optional<uint64_t> evaluation_;      // the pseudo-step of the evaluation under way
  const data::Dataset* evaluation_data_ = nullptr;
  uint64_t evaluations_ = 0;
  uint32_t evaluation_taken_ = 0;
  std::optional<Scoring> scoring_;
  // What the last survey found, each in the ledger's order. Only until the ledger is asked to draw,
  // commit or forget: then these may point to nothing.
  std::vector<WorkItem*> to_compute_;    // a forward result is missing, and nobody holds it
  std::vector<WorkItem*> to_redo_;       // likewise the stem's gradient
  std::vector<const WorkItem*> leased_;  // somebody holds the forward result that is missing
  double usual_pace_ = 0;                // of those whose pace is known; by count_leases()
  bool waiting_ = false;                 // the trainer waits for something
  uint64_t second_leases_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace outrigger::feed
