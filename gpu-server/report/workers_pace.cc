#include "gpu-server/report/workers_pace.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace outrigger::gpu_server {

bool WorkersPace::due(TimePoint now, std::span<const WorkerMeasures> workers) {
  constexpr Duration kYoung = std::chrono::minutes(2);
  constexpr Duration kOften = std::chrono::seconds(2);
  constexpr Duration kSeldom = std::chrono::minutes(1);
  std::vector<std::string> names;
  for (const WorkerMeasures& one : workers) names.push_back(one.name);
  std::ranges::sort(names);
  const bool first = !begun_;
  if (first) begun_ = now;
  const Duration pace = now < *begun_ + kYoung ? kOften : kSeldom;
  if (!first && names == names_ && now < told_ + pace) return false;
  told_ = now;
  names_ = std::move(names);
  return true;
}

}  // namespace outrigger::gpu_server
