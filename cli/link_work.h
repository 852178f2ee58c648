#pragma once

#include <memory>

#include "cli/wires.h"
#include "common/tensor.h"
#include "training/planner/model/costs.h"

namespace outrigger::cli {

/// Measures what links take of cores like those of this machine: frames with and without tensors go
/// to and fro over loopback, and count by the processor time of this process, which must do nothing
/// else meanwhile. Each call takes some hundredths of a second. Not thread-safe.
class LinkMeter {
 public:
  /// `type`: of the tensors at a cut in memory. Throws IoError where loopback cannot be used.
  explicit LinkMeter(ElementType type);
  ~LinkMeter();

  training::LinkWork work(const Wires& wires);

 private:
  class Loop;
  const std::unique_ptr<Loop> loop_;
  const std::shared_ptr<const Tensor> crossing_;
  double frame_ = 0;
  double byte_ = 0;
};

}  // namespace outrigger::cli
