#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/flat_map.h"
#include "feed/messages.h"
#include "feed/room.h"
#include "training/planner/model/costs.h"

namespace outrigger::training {

/// What an agent (worker/work/agent.h) does, in the same order of urgency, but only how long it
/// takes: its results hold no values. Not thread-safe.
class WorkerModel {
 public:
  /// `job` must outlive this. `leases`, `asked_at_once`: as those of an agent.
  WorkerModel(const JobCosts& job, const WorkerRates& rates, uint32_t leases,
              uint32_t asked_at_once);

  void receive(feed::ServerMessage message);
  enum class Stage : uint8_t { kDecode, kForward, kAwaitGradient, kBackward };
  /// Some parts of work that follow on each other; after each it looks for more urgent work.
  struct Piece {
    feed::WorkKey key;
    Stage stage = Stage::kDecode;
    double seconds = 0;  // of a part
    int parts = 1;
    bool continues(const Piece& other) const { return key == other.key && stage == other.stage; }
  };
  /// The most urgent piece. Nothing: wait for a message.
  std::optional<Piece> next() const;
  /// It is done, or was for nothing: it may have been cancelled meanwhile.
  void done(const Piece& piece);
  /// Puts what is to be sent in the place of what `messages` holds, whose memory this goes on with.
  void take_outbox(std::vector<feed::WorkerMessage>& messages);
  void set_rates(const WorkerRates& rates) { rates_ = rates; }
  const WorkerRates& rates() const { return rates_; }

 private:
  struct Work {
    feed::Lease lease;
    Stage stage = Stage::kDecode;
    int decoded = 0;  // of kDecodeParts
    feed::WorkTimes times;
    bool room_given_back = false;
  };
  using Works = FlatMap<feed::WorkKey, Work>;

  const CutCosts& costs(const Work& work) const;
  /// Of the first work that is at this stage and has what it needs.
  std::optional<Piece> first_at(Stage stage) const;
  double seconds(const Work& work) const;
  void decoded(Works::iterator at, const Piece& piece);
  void forward_done(Works::iterator at, double seconds);
  void backward_done(Works::iterator at, double seconds);
  void send_micro_batch(Works::iterator at);
  void give_room_back(Work& work);
  void send(const std::optional<feed::Pull>& pull);
  void finish(Works::iterator at);
  void drop(Works::iterator at);

  const JobCosts& job_;
  WorkerRates rates_;
  Works works_;
  std::set<uint64_t> stems_;  // versions that are here
  std::vector<feed::WorkerMessage> outbox_;
  std::shared_ptr<const Tensor> contents_;  // of every result: of so many samples, else nothing
  feed::Room room_;
};

}  // namespace outrigger::training
