#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include "api/launch.h"
#include "api/training_job.h"

namespace outrigger::cli {

struct LocalRunOptions {
  std::filesystem::path job_file;
  int workers = 0;
  api::Mounts mounts;
  bool resume = false;
  std::optional<int> threads;         // of each server; absent: the cores shared evenly
  std::optional<int> worker_threads;  // of each worker; absent: the cores shared evenly
  std::optional<std::filesystem::path> output;
  std::string log_level = "info";
  api::DeviceChoice device = api::DeviceChoice::kAuto;  // of the servers
  /// For experiments, see api::Launch: a profile instead of arithmetic, how many cores of its
  /// machine the device and each worker are worth, and links that are limited in both directions.
  std::optional<std::filesystem::path> emulate;
  int device_cores = 1;
  int worker_cores = 1;
  int link_megabits = 0;
  int link_milliseconds = 0;
};

/// What a server's exit status means for the run. One that was told to stop before it listened for
/// signals died of this one: it was stopped, as `stop_asked` says, and did not fail.
int status_of_run(int server_status, bool stop_asked);

/// Of a server that a signal ended, which tells nobody why: "was killed by signal 9 (out of
/// memory?)". Empty: it ended by itself, or by a signal that was its stop.
std::string told_death(int server_status, bool stop_sent);

/// Cores of each of the servers of a run on a machine with so many.
int server_threads(const LocalRunOptions& options, int servers, int cores);

/// How a local run ended.
struct LocalRunResult {
  int exit_status = 0;              // the server's
  std::filesystem::path directory;  // of the run
  int worker_restarts = 0;
};

/// Runs a job on this machine: a server process per replica on free ports and `workers` worker
/// processes, whose logs go to the run's directory; workers that die are started again, with
/// back-off. A stop request stops the servers, which write a checkpoint. Returns when the servers
/// have ended. Throws InvalidInput, IoError before anything runs.
LocalRunResult run_locally(const LocalRunOptions& options, const api::TrainingJob& job,
                           const std::stop_token& stop);

}  // namespace outrigger::cli
