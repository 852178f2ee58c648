#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/hash.h"
#include "common/layer_seconds.h"
#include "common/tensor.h"
#include "data/sample.h"
#include "feed/messages.h"
#include "transport/link.h"

/// How the messages of a job become frames and back. What arrives may come from anybody who knows
/// the token, so every reading function checks what it reads and throws InvalidInput.
namespace outrigger::worker {

/// The type of a frame. Numbers are part of the protocol (transport::kProtocolVersion).
enum class FrameType : uint16_t {
  kSetup = 1,
  kHello = 2,
  kLease = 10,
  kStemWeights = 11,
  kCutGradient = 12,
  kCancel = 13,
  kCommitted = 14,
  kFarewell = 15,
  kPull = 20,
  kMicroBatch = 21,
  kStemGradient = 22,
  kBroken = 23,
  kReadFailed = 24,
  kLeaving = 25,
  kScores = 26,
};

/// The server's first words: all that a worker must know of the job.
struct Setup {
  std::string job;  // the resolved TrainingJob as JSON
  uint32_t classes = 0;
  uint32_t incarnation = 0;
  int32_t deepest_cut = 0;      // the deepest cut that the job may use, in layers; 0: pixels only
  bool only_timed = false;      // stems need not agree with the server's: few samples time one
  std::string instruction_set;  // what stems must be computed with
  std::vector<data::Sample> probe;  // samples whose bytes the worker hashes
};

/// The worker's answer.
struct Hello {
  std::string name;  // for people: host and index
  std::string version;
  uint32_t cores = 1;
  Sha256 probe{};          // of the bytes of Setup::probe
  std::string problem;     // why the probe could not be read; empty: none
  std::string numerics;    // fingerprint of the stem up to deepest_cut; empty: it runs no stems
  uint64_t memory = 0;     // bytes that are free for the job
  float pass_seconds = 0;  // forward and backward of that stem for one micro-batch
  std::vector<LayerSeconds> layers;  // of it, of one core; empty: they were not timed
};

transport::Frame to_frame(const Setup& setup);
transport::Frame to_frame(const Hello& hello);
Setup read_setup(const transport::ReceivedFrame& frame);
Hello read_hello(const transport::ReceivedFrame& frame);

/// What tensors are in memory on either side, and the key of stochastic rounding.
struct WireContext {
  ElementType activation_type = ElementType::kFloat32;
  uint64_t seed = 0;
  /// Activations that came in int8 stay so (MicroBatch::scales), for a device that unpacks them.
  bool keep_int8 = false;
};

transport::Frame to_frame(const feed::ServerMessage& message, const WireContext& context);
transport::Frame to_frame(const feed::WorkerMessage& message, const WireContext& context);
feed::ServerMessage read_server_message(const transport::ReceivedFrame& frame,
                                        const WireContext& context);
feed::WorkerMessage read_worker_message(const transport::ReceivedFrame& frame,
                                        const WireContext& context);

}  // namespace outrigger::worker
