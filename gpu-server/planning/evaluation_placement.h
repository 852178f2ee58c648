#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "api/training.h"

namespace outrigger::gpu_server {

/// Where evaluations are made, from what the former ones cost training. On the server training
/// stands still meanwhile; on workers it goes on, more slowly where they have no time to spare.
/// Pure; not thread-safe.
class EvaluationPlacement {
 public:
  /// `fixed`: results must come at the same step in every run (they can end it early).
  EvaluationPlacement(api::EvaluationPlace wanted, bool fixed) : wanted_(wanted), fixed_(fixed) {}

  /// Whether workers are to make the next one, of which so many could take part. The server's cost
  /// is measured first, then the workers'; from then on the cheaper one's turn it is, and the
  /// workers' again where their number has changed by a quarter.
  bool on_workers(size_t workers) const;
  /// The next one is due and workers have done only this part (0 to 1) of the former: whether the
  /// server is to make that one instead of waiting.
  bool server_instead(double done) const;
  /// Training stood still for so long.
  void server_took(double seconds) { server_ = mean(server_, seconds); }
  /// Training lost so much in all, beside an evaluation by so many workers.
  void workers_took(double seconds, size_t workers);

 private:
  static double mean(const std::optional<double>& former, double newest);
  const api::EvaluationPlace wanted_;
  const bool fixed_;
  std::optional<double> server_;
  std::optional<double> workers_;
  size_t measured_with_ = 0;
};

/// What training loses while an evaluation goes on beside it: how much longer than usual its steps
/// take. Pure; not thread-safe.
class EvaluationLoss {
 public:
  /// A step that took so long; `beside`: an evaluation went on.
  void step(double seconds, bool beside);
  /// Training stood still.
  void waited(double seconds) { lost_ += seconds; }
  /// Seconds lost since the last call; never below 0.
  double take();

 private:
  double usual_ = 0;  // seconds of a step without an evaluation; 0: not known
  double lost_ = 0;
};

}  // namespace outrigger::gpu_server
