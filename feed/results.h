#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/tensor.h"
#include "feed/ledger.h"
#include "feed/messages.h"

/// What comes out of a coordinator: messages for workers, micro-batches for the trainer, and what
/// is told about the samples.
namespace outrigger::feed {

/// A message and whom it is for.
struct Outgoing {
  WorkerId to = 0;
  ServerMessage message;
};

/// One line of the audit: what filled a micro-batch, written when its step is committed.
struct AuditItem {
  uint64_t step = 0;
  uint32_t index = 0;
  uint64_t first_slot = 0;
  std::vector<uint32_t> samples;
  uint64_t pixel_hash = 0;
};
struct Replacement {
  uint64_t slot = 0;
  uint32_t broken = 0;
  uint32_t by = 0;
  std::string path;
  std::string reason;
};

/// What the trainer takes out: a micro-batch that is ready for the head.
struct ReadyMicroBatch {
  uint64_t step = 0;
  uint32_t index = 0;
  int32_t cut = 0;
  std::shared_ptr<const Tensor> tensor;
  std::shared_ptr<const Tensor> scales;  // as MicroBatch's
  std::vector<float> statistics;         // of the stem's norms; empty at cut 0
  std::vector<uint64_t> slots;
  std::vector<int32_t> labels;
};

}  // namespace outrigger::feed
