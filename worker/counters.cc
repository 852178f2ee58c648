#include "worker/counters.h"

namespace outrigger::worker {

SessionCounters::SessionCounters(telemetry::Metrics& metrics)
    : micro_batches(metrics.counter(
          {"outrigger_worker_micro_batches_total", "Micro-batches made and sent.", {}})),
      stem_gradients(metrics.counter(
          {"outrigger_worker_stem_gradients_total", "Stem gradients computed and sent.", {}})),
      scored_batches(metrics.counter(
          {"outrigger_worker_scored_batches_total", "Batches scored for evaluations.", {}})),
      broken_samples(metrics.counter(
          {"outrigger_worker_broken_samples_total", "Samples that were no image.", {}})),
      failed_reads(metrics.counter(
          {"outrigger_worker_failed_reads_total", "Leases given back because a read failed.", {}})),
      busy_seconds(metrics.counter(
          {"outrigger_worker_busy_seconds_total", "Time spent decoding and computing.", {}})),
      unfinished(metrics.gauge(
          {"outrigger_worker_unfinished_leases", "Leases held and not finished.", {}})) {}

}  // namespace outrigger::worker
