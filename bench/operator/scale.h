#pragma once

#include "bench/operator/stage.h"
#include "bench/operator/table.h"

namespace outrigger::bench {

struct ScaleSize {
  int jobs = 1000;
  int other_pods = 20'000;
  int seconds = 30;  // for which CPU is watched
};

/// An operator with many jobs: idle, with its servers polled, started anew, beside the pods of
/// others. Its nodes must not run yet.
void measure_scale(Stage& stage, Table& table, const ScaleSize& size);

}  // namespace outrigger::bench
