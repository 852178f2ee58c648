#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace outrigger::cli {

/// How a job has spent its time, measured or simulated.
struct Limits {
  double stall_percent = 0;      // the device waits for workers or links
  std::string stall_cause;       // for what most: "Read", "Decode", "Stem", "Link", "Weights"
  double optimizer_percent = 0;  // the end of the step
  uint64_t workers = 0;
  std::optional<uint64_t> desired_workers = std::nullopt;  // that it can use, by the planner
};

/// What limits the job and what to change, in two or three sentences.
std::string advice(const Limits& limits);

}  // namespace outrigger::cli
