#pragma once

#include "bench/operator/stage.h"
#include "bench/operator/table.h"

namespace outrigger::bench {

/// Pods a second of the operator, of a client without logic that posts the same objects, and of the
/// Job controller, in turns; and the operator's time of CPU.
void compare_rivals(Stage& stage, Table& table, int jobs, int count);

/// From the creation of a job to that of its last pod, ten jobs a second.
void measure_latency(Stage& stage, Table& table, int jobs);

}  // namespace outrigger::bench
