#include "gpu-server/planning/evaluation_placement.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace outrigger::gpu_server {

bool EvaluationPlacement::on_workers(size_t workers) const {
  if (workers == 0 || wanted_ == api::EvaluationPlace::kServer) return false;
  if (wanted_ == api::EvaluationPlace::kWorkers) return true;
  if (fixed_ || !server_) return false;
  const double change =
      std::abs(static_cast<double>(workers) - static_cast<double>(measured_with_));
  if (!workers_ || 4 * change >= static_cast<double>(measured_with_)) return true;
  return *workers_ < *server_;
}

bool EvaluationPlacement::server_instead(double done) const {
  constexpr double kMuch = 0.5;
  return wanted_ == api::EvaluationPlace::kAuto && done < kMuch;
}

void EvaluationPlacement::workers_took(double seconds, size_t workers) {
  workers_ = mean(workers == measured_with_ ? workers_ : std::nullopt, seconds);
  measured_with_ = workers;
}

double EvaluationPlacement::mean(const std::optional<double>& former, double newest) {
  return former ? (*former + newest) / 2 : newest;
}

void EvaluationLoss::step(double seconds, bool beside) {
  constexpr double kNewestWeight = 0.1;
  if (beside) {
    if (usual_ > 0) lost_ += seconds - usual_;
  } else {
    usual_ = usual_ == 0 ? seconds : (1 - kNewestWeight) * usual_ + kNewestWeight * seconds;
  }
}

double EvaluationLoss::take() { return std::max(0.0, std::exchange(lost_, 0.0)); }

}  // namespace outrigger::gpu_server
