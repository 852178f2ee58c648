#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/bytes.h"
#include "common/layer_seconds.h"
#include "common/tensor.h"
#include "common/wire_format.h"
#include "data/sample.h"

/// What the server and a worker say to each other in a step. Plain values; how they become frames
/// is worker/protocol/protocol.h.
namespace outrigger::feed {

/// The number of one try at one piece of work; a number is given out once in the life of a job.
struct WorkKey {
  uint32_t incarnation = 0;
  uint64_t step = 0;
  uint32_t index = 0;
  uint32_t attempt = 0;
  auto operator<=>(const WorkKey&) const =
      default;  // NOLINT(modernize-use-nullptr): its own rewriting
};
std::string to_string(const WorkKey& key);

/// Evaluations are pseudo-steps behind all training steps, so training's work goes first.
constexpr uint64_t kFirstEvaluation = uint64_t{1} << 62;

enum class WorkKind : uint8_t { kForward, kBackward, kEvaluate, kScore };

struct LeaseSample {
  uint64_t slot = 0;
  uint32_t id = 0;  // the sample's index in the data set
  data::Sample sample;
};

// ---- server to worker

/// One piece of work for this worker. Forward: decode and augment, run the stem (cut > 0), send a
/// MicroBatch, keep the activations. Backward: decode and run the stem at `stem_version` again,
/// apply `cut_gradient`, send a StemGradient. Evaluate: decode with the centre crop, send the
/// pixels. Score: decode likewise, run the whole network of weights `stem_version` in inference,
/// send Scores; when there is nothing else to do.
struct Lease {
  WorkKey key;
  WorkKind kind = WorkKind::kForward;
  int32_t cut = 0;            // layers before the cut; 0: pixels
  bool stem_trains = false;   // whether a CutGradient will follow
  uint64_t stem_version = 0;  // meant for cut > 0
  WireFormat activations = WireFormat::kFloat32;
  WireFormat gradients = WireFormat::kFloat32;
  std::vector<LeaseSample> samples;
  std::shared_ptr<const Tensor> cut_gradient;  // Backward only
};

/// Parameters and running averages of the layers before `cut`, as of `version`. Those of all layers
/// are an evaluation's, whose number the version is then.
struct StemWeights {
  uint64_t version = 0;
  int32_t cut = 0;
  std::shared_ptr<const std::vector<float>> parameters;  // the first `parameter_count` count
  std::shared_ptr<const std::vector<float>> buffers;     // likewise
  uint64_t parameter_count = 0;
  uint64_t buffer_count = 0;
};

/// The gradient at the cut for a forward lease whose activations the worker still holds.
struct CutGradient {
  WorkKey key;
  WireFormat wire = WireFormat::kFloat32;
  std::shared_ptr<const Tensor> gradient;
};

/// The lease's result is no longer wanted.
struct Cancel {
  WorkKey key;
};

/// All steps before `step` are done, and no stem older than `oldest_version` will be asked for.
struct Committed {
  uint64_t step = 0;
  uint64_t oldest_version = 0;
};

/// The server ends the work; the worker may try to join again if `again`.
struct Farewell {
  bool again = false;
  std::string reason;
  bool refused = false;  // it does not take this worker, for what the worker is
};

using ServerMessage = std::variant<Lease, StemWeights, CutGradient, Cancel, Committed, Farewell>;

// ---- worker to server

/// The worker has room for so many leases more.
struct Pull {
  uint32_t leases = 0;
};

/// What a piece of work took on the worker, in seconds with all its cores: what plans are made
/// from.
struct WorkTimes {
  int32_t cut = 0;
  float decode = 0;   // reading and augmenting too
  float read = 0;     // of these, waiting for bytes
  float forward = 0;  // of the stem
  float backward = 0;
  float decoded_ago = 0;       // since the pixels were there, when the result was made
  float bytes_per_second = 0;  // of the worker's link, as it knows it; 0: not known
  /// Of the stem's, of one core; mostly empty: few passes are timed.
  std::vector<LayerSeconds> layers = {};
};

/// The result of a forward or evaluation lease.
struct MicroBatch {
  WorkKey key;
  WireFormat wire = WireFormat::kFloat32;  // of activations; pixels always travel as they are
  std::shared_ptr<const Tensor> tensor;  // uint8 {n, H, W, C} at cut 0, else activations at the cut
  std::vector<float> statistics;         // of the stem's batch norms
  uint64_t pixel_hash = 0;               // of the decoded pixels, whatever the cut: for the audit
  WorkTimes times = {};
  /// Null; else `tensor` is as it travelled in int8, kInt8 or kUint8, and this is float32 {C}: what
  /// the elements of each channel are to be multiplied by.
  std::shared_ptr<const Tensor> scales = nullptr;
};

/// The result of a backward, or of a forward lease after its CutGradient: the stem's parameter
/// gradients.
struct StemGradient {
  WorkKey key;
  std::shared_ptr<const std::vector<float>> gradients;
  WorkTimes times = {};
};

/// The result of a score lease: a row of equally many floats (nn::Score) for each of its samples.
struct Scores {
  WorkKey key;
  std::vector<float> values;
  WorkTimes times = {};
};

/// Bytes were read but are no image: the samples at these places of the lease, ascending.
struct Broken {
  struct Item {
    uint32_t position = 0;
    std::string reason;
    bool always = false;  // no image in any slot, whatever is shown of it
  };
  WorkKey key;
  std::vector<Item> items;
};

/// Bytes could not be read. Says something about the worker, nothing about the sample.
struct ReadFailed {
  WorkKey key;
  std::string reason;
};

/// The worker finishes nothing more and gives all its leases back.
struct Leaving {};

using WorkerMessage =
    std::variant<Pull, MicroBatch, StemGradient, Broken, ReadFailed, Leaving, Scores>;

}  // namespace outrigger::feed
