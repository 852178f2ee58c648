#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/child_process.h"
#include "common/file.h"

/// Real server and worker processes over a small data set of drawn faces, for tests that kill them.
namespace outrigger::integration {

struct JobText {
  std::string cut = "Input";
  int share = 100;
  int steps = 12;
  int checkpoint_every = 1000;
  int staleness = 0;
  std::string precision = "Float32";
  std::string more_training;  // further lines of spec.training, indented by four
  std::string wire;           // "{activations: …}" or empty
  std::string model;  // a spec.model of its own; empty: a small net with strides, norms and dropout
  std::string seed = "3";
  int replicas = 1;  // 1 or 2
  std::string rate = "0.05";
  int port = 0;           // of the server; 0: any
  int broken_images = 0;  // of a copy of the data
  std::string max_bad_fraction = "0.01";
  bool copy_data = false;  // so that the test may change it
};

/// What one step was made of.
struct AuditLine {
  uint64_t first_slot = 0;
  std::vector<std::vector<uint32_t>> samples;
  std::vector<std::string> pixels;
  bool operator==(const AuditLine&) const = default;
};

/// Drawn once for all tests of the process: 12 people, 32x32.
const std::filesystem::path& faces();

/// One run in a folder of its own. Processes still running are ended by the destructor.
class TrainingRun {
 public:
  explicit TrainingRun(const JobText& job);
  ~TrainingRun();

  /// Starts the server and waits until its port is known. `resume` goes on from the newest
  /// checkpoint.
  void start_server(bool resume = false);
  /// Starts the second rank of a job with two; after start_server.
  void start_second_rank(bool resume = false);
  void signal_second_rank(int signal);
  int wait_for_second_rank(int limit = 120);
  /// Starts a worker of the first rank, or of the second; `fault` as OUTRIGGER_FAULT has it.
  void start_worker(const std::string& fault = {}, bool of_second_rank = false);
  void signal_server(int signal);
  /// To a worker that still runs; false where there is none with this number.
  bool signal_worker(size_t index, int signal);
  size_t workers() const { return workers_.size(); }
  bool worker_runs(size_t index);
  void wait_for_worker(size_t index, int limit = 60);
  /// Adds a byte to every image of the run's copy.
  void change_every_image();
  /// Waits for the server's end and returns its exit status; fails the test after `limit` seconds.
  int wait_for_server(int limit = 120);
  bool server_runs();
  /// The newest line of metrics.jsonl about a step; −1 before the first.
  int64_t step() const;
  void wait_for_step(int64_t step, int limit = 120);

  /// SHA-256 over weights and momentum of the newest checkpoint, "none" without one.
  std::string weights() const;
  /// The audit, the newest incarnation's line for each step.
  std::map<uint64_t, AuditLine> audit() const;
  std::filesystem::path directory() const { return folder_.path() / "out" / "test"; }
  std::string server_log() const;
  std::string worker_log(size_t index) const;
  const std::filesystem::path& job_file() const { return job_file_; }
  int port() const { return port_; }
  int status_port() const { return status_port_; }
  const std::filesystem::path& token_file() const { return token_file_; }

 private:
  TemporaryDirectory folder_{"outrigger-integration"};
  std::filesystem::path job_file_;
  std::filesystem::path token_file_;
  std::optional<cli::ChildProcess> server_;
  std::optional<cli::ChildProcess> second_;
  std::vector<cli::ChildProcess> workers_;
  int port_ = 0;
  int status_port_ = 0;
  int replicas_ = 1;
  int wanted_port_ = 0;
  std::filesystem::path data_;
};

/// Trains to the end with so many workers and returns the run.
std::unique_ptr<TrainingRun> train(const JobText& job, int workers);

}  // namespace outrigger::integration
