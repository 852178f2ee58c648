#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/child_process.h"
#include "common/file.h"
#include "tests/integration/training/job_text.h"

/// Real server and worker processes over a small data set of drawn faces, for tests that kill them.
namespace outrigger::integration {

/// What one step was made of.
struct AuditLine {
  uint64_t first_slot = 0;
  std::vector<std::vector<uint32_t>> samples;
  std::vector<std::string> pixels;
  bool operator==(const AuditLine&) const = default;
};

/// How a worker is started.
struct WorkerStart {
  std::string fault;  // as OUTRIGGER_FAULT has it; empty: none
  bool of_second_rank = false;
  std::filesystem::path data;          // where it looks for the data; empty: where the server does
  std::filesystem::path program = {};  // empty: our worker
  int emulated_cores = 1;              // of the profile's machine, where the run emulates one
  int threads = 1;                     // 0: as many as it finds cores
};

/// One run in a folder of its own. Processes still running are ended by the destructor.
class TrainingRun {
 public:
  explicit TrainingRun(const JobText& job);
  ~TrainingRun();

  /// The first rank and workers are from now on started as emulated machines, the rank with one
  /// core.
  void emulate(const std::filesystem::path& profile) { profile_ = profile; }
  /// Starts the server and waits until its port is known. `resume` goes on from the newest
  /// checkpoint.
  void start_server(bool resume = false);
  /// Starts the second rank of a job with two; after start_server.
  void start_second_rank(bool resume = false);
  void signal_second_rank(int signal);
  /// Starts both ranks of a job with two by one command, with the threads of the two above; the
  /// server is then their parent.
  void start_ranks(bool resume = false);
  /// As a terminal does with Ctrl-C.
  void signal_server_group(int signal);
  /// The processes that this parent has, in the order of ranks.
  std::vector<pid_t> rank_processes() const;
  /// What it left in its termination file; empty where it left none.
  std::string last_words() const;
  int wait_for_second_rank(int limit = 120);
  /// Returns its number.
  size_t start_worker(const WorkerStart& start = {});
  void signal_server(int signal);
  /// POST /plan with fields of spec.split; the answer's HTTP status.
  int wish_plan(const std::string& split);
  /// POST /job; likewise.
  int tell_job(const std::string& body);
  nlohmann::json status() const;
  /// To a worker that still runs; false where there is none with this number.
  bool signal_worker(size_t index, int signal);
  size_t workers() const { return workers_.size(); }
  bool worker_runs(size_t index);
  pid_t worker_process(size_t index) const { return workers_.at(index).id(); }
  /// Whether a signal has stopped it, as SIGSTOP does.
  bool worker_is_stopped(size_t index);
  /// Returns its exit status.
  int wait_for_worker(size_t index, int limit = 60);
  /// The images (or shards) of this run: a copy where the job asks for one.
  const std::filesystem::path& data() const { return data_; }
  /// Waits for the server's end and returns its exit status; fails the test after `limit` seconds.
  int wait_for_server(int limit = 120);
  bool server_runs();
  /// The newest line of metrics.jsonl about a step; −1 before the first.
  int64_t step() const;
  void wait_for_step(int64_t step, int limit = 120);
  /// Waits for a plan with stems away, or for one without.
  void wait_for_plan(bool away, int limit = 120) const;

  /// All lines of metrics.jsonl of one type: step, evaluation, checkpoint, plan.
  std::vector<nlohmann::json> events(const std::string& type) const;
  void wait_for_log(const std::string& text, int limit = 60) const;

  /// Steps that have a checkpoint, ascending.
  std::vector<int64_t> checkpoints() const;
  /// SHA-256 over weights and momentum of the newest checkpoint, "none" without one.
  std::string weights() const;
  /// The audit, the newest incarnation's line for each step.
  std::map<uint64_t, AuditLine> audit() const;
  std::filesystem::path directory() const { return folder_.path() / "out" / "test"; }
  /// Where its checkpoints are; mostly the same.
  const std::filesystem::path& checkpoint_directory() const { return checkpoint_directory_; }
  std::string server_log() const;
  std::string worker_log(size_t index) const;
  const std::filesystem::path& job_file() const { return job_file_; }
  /// Writes the job file anew, for the next start of the server.
  void change_job(const JobText& job);
  int port() const { return port_; }
  int status_port() const { return status_port_; }
  const std::filesystem::path& token_file() const { return token_file_; }

 private:
  void emulate_machine(std::vector<std::string>& arguments, int cores) const;
  void launch_server(bool resume, const std::vector<std::string>& more);
  int post(const std::string& path, const std::string& body) const;

  TemporaryDirectory folder_{"outrigger-integration"};
  int replicas_;
  int wanted_port_;
  std::filesystem::path data_;
  std::filesystem::path checkpoint_directory_;
  std::filesystem::path profile_;  // of emulated machines; empty: none are
  const std::filesystem::path job_file_;
  const std::filesystem::path token_file_;
  const std::filesystem::path control_token_file_;
  std::optional<ChildProcess> server_;
  std::optional<ChildProcess> second_;
  std::vector<ChildProcess> workers_;
  int port_ = 0;
  int status_port_ = 0;
};

/// Trains to the end with so many workers and returns the run.
std::unique_ptr<TrainingRun> train(const JobText& job, int workers);

/// Fails the test unless both runs have the same weights, bit by bit, and were fed the same, each
/// slot once.
void expect_same_run(const TrainingRun& run, const TrainingRun& truth, const std::string& what);

/// All tensors of a safetensors file, by name.
std::map<std::string, std::vector<float>> tensors(const std::filesystem::path& file);

}  // namespace outrigger::integration
