#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "nn/graph.h"

namespace outrigger::worker {

/// What a profile (`outrigger plan -o json`) says that the pieces of a micro-batch take; seconds of
/// one core of the machine that measured it, and of its GPU where it had one.
struct EmulatedTimes {
  struct Layer {
    std::string name;
    double forward = 0;
    double backward = 0;
  };
  /// Forward and backward on a GPU: of what is behind a cut, and of what is before it.
  struct Cut {
    int32_t layers = 0;
    double head = 0;
    double stem = 0;
  };
  struct Pass {
    double forward = 0;
    double backward = 0;
  };

  std::vector<Layer> layers;  // all, or up to the deepest cut where a GPU was measured
  std::vector<Cut> cuts;      // of a GPU, the first with no layers; empty: the device is cores
  double optimizer = 0;       // of a step, on the device
  double decode = 0;
  int64_t micro_batch = 1;

  bool of_gpu() const { return !cuts.empty(); }
  /// Forward and backward of the layers before a cut, on a core.
  double pass_seconds(int32_t cut) const;
  /// Of a core. What layers behind the last one that was measured take is reckoned from their
  /// multiply-adds.
  Pass on_cores(nn::Segment segment, const nn::Graph& graph) const;
  /// Of the device. Throws InvalidInput where that has no such cut.
  Pass on_device(nn::Segment segment, const nn::Graph& graph) const;
  /// Throws InvalidInput where the layers are not those of the graph.
  void check(const nn::Graph& graph) const;
};

/// Throws InvalidInput that names the file and what is wrong in it, IoError where it cannot be
/// read.
EmulatedTimes read_emulated_times(const std::filesystem::path& profile);

}  // namespace outrigger::worker
