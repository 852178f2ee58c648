#pragma once

namespace outrigger::telemetry {

/// What the kernel says of this process (proc(5)).
struct ProcessUsage {
  double resident_bytes = 0;
  double cpu_seconds = 0;    // user and system, all threads
  double start_seconds = 0;  // since the Unix epoch
  double open_files = 0;
};

ProcessUsage process_usage();

}  // namespace outrigger::telemetry
