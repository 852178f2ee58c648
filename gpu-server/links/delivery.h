#pragma once

#include "feed/ledger.h"
#include "feed/stall.h"
#include "gpu-server/planning/worker_book.h"

namespace outrigger::gpu_server {

/// How the result that the trainer got last of an item came about: the forward result, or the
/// stem's gradient once that is there. `remote`: what is known of the worker that it came from;
/// null: it came from this process, or from one that is gone. `stem_bytes`: of the plan's stem.
feed::Delivery delivery_of(const feed::WorkItem& item, const WorkerMeasures* remote,
                           double stem_bytes);

}  // namespace outrigger::gpu_server
