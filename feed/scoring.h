#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "data/sample.h"
#include "feed/ledger.h"
#include "feed/messages.h"

namespace outrigger::feed {

/// Which network is scored, on what.
struct ScoringOptions {
  uint64_t number = 0;  // of the evaluation: the step in its keys and the version of its weights
  uint32_t incarnation = 0;
  const data::Dataset* dataset = nullptr;                // outlives the scoring
  uint32_t batch = 1;                                    // samples of a lease
  size_t width = 1;                                      // floats of a row
  int32_t layers = 0;                                    // of the network
  std::shared_ptr<const std::vector<float>> parameters;  // whole arenas
  std::shared_ptr<const std::vector<float>> buffers;
};

/// One evaluation that workers make beside training: which batches are done, and who is at the
/// others. A worker has few in hand, so that all end at about the same time; whoever finds nothing
/// left repeats what others still have. Pure bookkeeping, like the ledger. Not thread-safe.
class Scoring {
 public:
  explicit Scoring(ScoringOptions options);

  /// What the worker gets on top of what it has in hand: leases, and before the first of them the
  /// weights.
  std::vector<ServerMessage> give(WorkerId worker);
  bool is_mine(const WorkKey& key) const { return key.step == options_.number; }
  /// A result; returns the keys by worker that nobody waits for any more, to cancel them.
  /// Drops what is not wanted. Throws InvalidInput for a wrong number of values.
  std::vector<std::pair<WorkerId, WorkKey>> take(WorkerId from, const Scores& scores);
  /// Samples of the lease are no images: they are left out, the rest is done again. Likewise.
  std::vector<std::pair<WorkerId, WorkKey>> take(WorkerId from, const Broken& broken);
  /// The attempt ended without a result. False where it was none.
  bool read_failed(WorkerId from, const WorkKey& key);
  /// All that the worker had in hand is given back, and it has no weights any more.
  void lose(WorkerId worker);
  /// What all have in hand, to cancel it.
  std::vector<std::pair<WorkerId, WorkKey>> in_hand() const;

  uint32_t batches() const { return static_cast<uint32_t>(batches_.size()); }
  uint32_t batches_done() const { return done_; }
  bool done() const { return done_ == batches(); }

  /// What a batch came to; its rows are empty where it is not done or all its images are broken.
  struct Batch {
    std::vector<int32_t> labels;
    std::vector<float> rows;
  };
  std::vector<Batch> take_results();

 private:
  struct Work {
    std::vector<uint32_t> samples;                       // those that are not known as broken
    std::vector<std::pair<WorkerId, uint32_t>> holders;  // with the attempt's number
    uint32_t attempts = 0;
    bool done = false;
    std::vector<float> rows;
  };
  Work* held(WorkerId from, const WorkKey& key);
  std::optional<uint32_t> next_for(WorkerId worker);
  Lease lease(WorkerId worker, uint32_t index);
  void release(Work& work, uint32_t index, WorkerId worker);
  /// Nobody is at it any more; returns who was, but for `from`.
  std::vector<std::pair<WorkerId, WorkKey>> end_attempts(Work& work, const WorkKey& key,
                                                         WorkerId from);
  void finish(Work& work);
  /// After its holders have changed.
  void note_holders(uint32_t index);

  const ScoringOptions options_;
  std::vector<Work> batches_;
  std::deque<uint32_t> waiting_;  // batches that nobody has in hand and that are not done
  std::set<uint32_t> with_one_;   // that one worker has in hand
  struct Hand {
    bool has_weights = false;
    uint32_t leases = 0;
  };
  std::map<WorkerId, Hand> hands_;
  uint32_t done_ = 0;
};

}  // namespace outrigger::feed
