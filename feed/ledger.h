#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "feed/messages.h"

namespace outrigger::feed {

using WorkerId = uint32_t;

/// The life of one micro-batch. Lost before HeadDone: drawn again. Lost after: only the stem's
/// backward is done again.
enum class WorkState : uint8_t { kDrawn, kLeased, kReceived, kHeadDone, kCommitted };
const char* to_string(WorkState state);

/// Who holds a lease for the result that is missing.
struct Holder {
  WorkerId worker = 0;
  uint32_t attempt = 0;
  WorkKind kind = WorkKind::kForward;
  TimePoint since;
};

/// What a tensor takes on the wire: pixels travel as they are, whatever the format.
double bytes_on_wire(const Tensor& tensor, WireFormat wire);

/// What of a slot's series was no image there.
struct SlotTries {
  uint32_t broken = 0;
  std::string reason;  // of the first of them
};

/// One micro-batch of one step.
struct WorkItem {
  // What is looked at with every message lies together.
  WorkState state = WorkState::kDrawn;
  std::shared_ptr<const std::vector<float>> stem_gradient;
  std::vector<Holder> holders;  // of the missing result

  uint64_t step = 0;
  uint32_t index = 0;
  int32_t cut = 0;
  bool evaluation = false;  // pixels with the centre crop, from the evaluation's data set
  bool local = false;       // the server's own worker is to make its pixels
  bool stem_trains = false;
  double stem_memory = 0;  // bytes that a worker must have to be given it
  uint64_t stem_version = 0;
  WireFormat activations = WireFormat::kFloat32;
  WireFormat gradients = WireFormat::kFloat32;
  std::vector<LeaseSample> samples;
  std::vector<SlotTries> tries;  // of training's samples, each of its slot's series

  uint32_t attempts = 0;         // numbers given out so far
  std::optional<Holder> source;  // whose forward result was taken; it still holds the activations
  std::optional<MicroBatch> result;            // until the trainer takes it
  std::shared_ptr<const Tensor> cut_gradient;  // from HeadDone on
  std::optional<TimePoint> needed_since;  // when the trainer began to wait for the missing result
  WorkTimes times;             // of the forward result that was taken, then of the stem's gradient
  double sent_bytes = 0;       // of that result's tensor, on the wire
  uint32_t read_failures = 0;  // since the last result
  TimePoint unread_since;      // the first of them
  uint64_t pixel_hash = 0;

  /// A result is missing and nobody holds a lease for it.
  bool unleased() const;
  /// What is missing: the forward result, the stem's gradient, or nothing.
  enum class Missing : uint8_t { kForward, kGradient, kNothing };
  Missing missing() const {
    if (state == WorkState::kDrawn || state == WorkState::kLeased) return Missing::kForward;
    const bool gradient = state == WorkState::kHeadDone && stem_gradient == nullptr;
    return gradient ? Missing::kGradient : Missing::kNothing;
  }
};

/// The table of all micro-batches that are drawn and not committed. Pure bookkeeping: no time,
/// message or policy. Not thread-safe.
class Ledger {
 public:
  explicit Ledger(uint32_t incarnation) : incarnation_(incarnation) {}

  /// Adds a step; its items are Drawn.
  void draw(uint64_t step, std::vector<WorkItem> items);
  /// Null where the step is not drawn or already committed.
  WorkItem* find(uint64_t step, uint32_t index);
  /// Whether its forward result is there and was not taken out.
  bool has_result(uint64_t step, uint32_t index) const;
  /// The item a result belongs to, if this attempt is one whose result is still wanted; else null:
  /// drop it.
  WorkItem* wanted(const WorkKey& key, WorkerId from);
  /// Begins an attempt by `worker` and returns its number.
  WorkKey lease(WorkItem& item, WorkerId worker, WorkKind kind, TimePoint now);

  /// The forward result was accepted from the attempt; other attempts are over and are returned (to
  /// cancel them).
  std::vector<Holder> received(WorkItem& item, const WorkKey& key, MicroBatch result);
  /// The head has run; the gradient at the cut is kept. True if the source still holds the
  /// activations.
  bool head_done(WorkItem& item, std::shared_ptr<const Tensor> cut_gradient);
  /// The stem's gradient was accepted; other attempts are over.
  std::vector<Holder> gradient_received(WorkItem& item, const WorkKey& key,
                                        std::shared_ptr<const std::vector<float>> gradients);
  /// The attempt ended without a result.
  void give_back(WorkItem& item, uint32_t attempt);
  /// All that the worker held is given back.
  void lose(WorkerId worker);
  /// Removes the step, which must be complete.
  void commit(uint64_t step);

  /// How many items of each state a worker holds: with a lease for what is missing, or with the
  /// activations that a gradient will want.
  std::map<WorkState, uint32_t> held_by(WorkerId worker) const;

  const std::map<uint64_t, std::vector<WorkItem>>& steps() const { return steps_; }
  std::map<uint64_t, std::vector<WorkItem>>& steps() { return steps_; }
  uint32_t incarnation() const { return incarnation_; }

 private:
  uint32_t incarnation_;
  std::map<uint64_t, std::vector<WorkItem>> steps_;
};

}  // namespace outrigger::feed
