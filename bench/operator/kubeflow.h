#pragma once

#include <optional>
#include <string>

#include "bench/operator/load.h"
#include "bench/operator/stage.h"
#include "common/child_process.h"

namespace outrigger::bench {

/// Kubeflow's training operator (v1.9) as it is released, with its controller of PyTorchJobs alone
/// and the limits() that the Job controller has here; by itself it takes 20 requests a second in
/// bursts of 30, and one thread.
/// Its webhook is not asked, so nothing checks what is posted. Not thread-safe.
class TrainingOperator {
 public:
  /// Why it cannot be started here; empty: it can.
  static std::string missing();
  /// The flags that hold it back, as given here.
  static std::string limits();
  /// Installs its kind and what it wants to find. Throws IoError.
  explicit TrainingOperator(Stage& stage);
  ~TrainingOperator();
  TrainingOperator(const TrainingOperator&) = delete;
  TrainingOperator& operator=(const TrainingOperator&) = delete;

  /// For one namespace; returns once it is ready.
  void start(const std::string& ns);
  void stop() { process_.reset(); }
  pid_t id() const { return process_->id(); }

 private:
  void make_certificate() const;

  Stage& stage_;
  const std::filesystem::path certificates_;
  std::optional<ChildProcess> process_;
};

/// A PyTorchJob of a master and workers, as many pods as our jobs have.
Posting pytorch_job(const std::string& ns, int number);
/// How many of a namespace's PyTorchJobs run.
int running_pytorch_jobs(kube::Client& client, const std::string& ns);

}  // namespace outrigger::bench
