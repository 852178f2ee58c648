#include "gpu-server/report/instruments.h"

#include <cctype>
#include <string>

namespace outrigger::gpu_server {
namespace {

telemetry::Counter& link_bytes(telemetry::Metrics& metrics, const char* direction) {
  return metrics.counter({"outrigger_server_link_bytes_total",
                          "Bytes that crossed the links with remote workers.",
                          {"direction"}},
                         {{"direction", direction}});
}

void show_if_any(telemetry::Gauge& gauge, std::optional<double> value) {
  if (value) {
    gauge.set(*value);
  } else {
    gauge.withdraw();
  }
}

/// A cause as labels are written.
std::string label_of(feed::StallCause cause) {
  std::string label = feed::to_string(cause);
  label.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(label.front())));
  return label;
}

}  // namespace

Instruments::Instruments(telemetry::Metrics& metrics)
    : steps(metrics.counter({"outrigger_server_steps_total", "Optimizer steps done.", {}})),
      samples(metrics.counter(
          {"outrigger_server_samples_total", "Samples that this rank trained on.", {}})),
      busy(metrics.counter({"outrigger_server_step_seconds_total", "Time spent in steps.", {}})),
      planning(metrics.counter({"outrigger_server_planning_seconds_total",
                                "Time between steps in which plans were compared.",
                                {}})),
      bytes_in(link_bytes(metrics, "in")),
      bytes_out(link_bytes(metrics, "out")),
      second_leases(
          metrics.counter({"outrigger_server_second_leases_total",
                           "Work that was given to a second worker, the first being late.",
                           {}})),
      loss(metrics.gauge({"outrigger_server_loss", "Mean loss of the newest step.", {}})),
      accuracy(metrics.gauge(
          {"outrigger_server_accuracy_ratio", "Training accuracy of the newest step.", {}})),
      workers(metrics.gauge({"outrigger_server_workers", "Remote workers joined.", {}})),
      desired(metrics.gauge({"outrigger_server_desired_workers",
                             "Workers that the job can use, as the planner reckons.",
                             {}})),
      rate(metrics.gauge(
          {"outrigger_server_samples_per_second", "Smoothed training rate of this rank.", {}})),
      work(metrics.gauge({"outrigger_server_work_ratio",
                          "Part of the network's multiply-adds that the server does by the plan.",
                          {}})),
      all(metrics) {
  desired_workers(std::nullopt);
  for (size_t i = 0; i < feed::kStallCauses; ++i)
    stalls[i] = &metrics.counter({"outrigger_server_stall_seconds_total",
                                  "Time in which the device waited, by cause.",
                                  {"cause"}},
                                 {{"cause", label_of(static_cast<feed::StallCause>(i))}});
}

telemetry::Gauge& Instruments::plan(const feed::Plan& plan, uint32_t micro_batches) const {
  return all.gauge({"outrigger_server_plan_info",
                    "1 for the plan in force.",
                    {"cut", "share_percent", "local_input_percent", "activations", "gradients"}},
                   {{"cut", plan.cut_name},
                    {"share_percent", std::to_string(100 * plan.stems_away / micro_batches)},
                    {"local_input_percent", std::to_string(plan.local_percent(micro_batches))},
                    {"activations", to_string(plan.activations)},
                    {"gradients", to_string(plan.gradients)}});
}

void Instruments::desired_workers(std::optional<uint32_t> count) const {
  show_if_any(desired, count);
}

void Instruments::links(const FeedSnapshot& before, const FeedSnapshot& now) const {
  bytes_in.add(static_cast<double>(now.bytes_in - before.bytes_in));
  bytes_out.add(static_cast<double>(now.bytes_out - before.bytes_out));
  second_leases.add(static_cast<double>(now.second_leases - before.second_leases));
}

void Instruments::evaluation(const training::EvaluationResult& result) const {
  const auto show = [&](const char* metric, std::optional<double> value) {
    show_if_any(all.gauge({"outrigger_server_evaluation_ratio",
                           "What the newest evaluation measured on held-out images.",
                           {"metric"}},
                          {{"metric", metric}}),
                value);
  };
  show("accuracy", result.accuracy);
  show("verification", result.verification);
  show("identification", result.identification);
  show_if_any(
      all.gauge({"outrigger_server_evaluation_loss", "Mean loss of the newest evaluation.", {}}),
      result.loss);
}

}  // namespace outrigger::gpu_server
