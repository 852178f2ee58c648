#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// A cluster as `outrigger plan --simulate` is told of it: a YAML or JSON file of its own, no part
/// of a TrainingJob. Speeds are against the machine that has measured the job.
namespace outrigger::api {

struct ClusterChange {
  int64_t step = 0;
  double speed = 1;
  double link = 1;
};

struct ClusterServer {
  double cores = 1;
  double speed = 1;
  std::optional<double> device;  // as many such cores; absent: the cores are the device
  double megabits = 10'000;
  std::optional<double> gigabytes;  // of memory that the job may take
  std::optional<ClusterChange> change;
  std::optional<double> price;  // an hour
};

struct ClusterWorkers {
  std::string name;
  int64_t count = 1;
  double cores = 1;
  double speed = 1;
  double megabits = 1000;
  double milliseconds = 0.2;
  std::optional<double> gigabytes;  // of memory that the job may take on each
  bool stems = true;
  int64_t join_step = 0;
  std::optional<int64_t> leave_step;
  std::optional<ClusterChange> change;
  std::optional<double> price;  // an hour of each
};

struct Cluster {
  std::optional<std::string> profile;
  ClusterServer server;
  std::vector<ClusterWorkers> workers;
  int64_t steps = 200;
  double jitter_percent = 5;
  int64_t seed = 1;
};

/// Throws InvalidInput with all errors, one a line, each with file, line, column and field; IoError
/// where the file cannot be read.
Cluster load_cluster(const std::filesystem::path& path);

}  // namespace outrigger::api
