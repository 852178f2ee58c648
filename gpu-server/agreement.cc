#include "gpu-server/agreement.h"

#include <array>
#include <string>

#include "common/error.h"

namespace outrigger::gpu_server {
namespace {

// Where things lie in the sum over ranks. It carries the first rank's plan, since the others add
// zeros; every number is small enough for a float to hold exactly.
constexpr size_t kStop = 0;
constexpr size_t kStopEarly = 1;
constexpr size_t kPlan = 2;
constexpr size_t kVotes = 9;

void write_plan(const feed::Plan& plan, std::span<float> to) {
  to[0] = 1;
  to[1] = static_cast<float>(plan.number);
  to[2] = static_cast<float>(plan.cut);
  to[3] = static_cast<float>(plan.stems_away);
  to[4] = static_cast<float>(plan.activations);
  to[5] = static_cast<float>(plan.gradients);
  to[6] = static_cast<float>(plan.local_inputs);
}

feed::Plan read_plan(std::span<const float> from) {
  feed::Plan plan;
  plan.number = static_cast<uint64_t>(from[1]);
  plan.cut = static_cast<int32_t>(from[2]);
  plan.stems_away = static_cast<uint32_t>(from[3]);
  plan.activations = static_cast<WireFormat>(static_cast<int>(from[4]));
  plan.gradients = static_cast<WireFormat>(static_cast<int>(from[5]));
  plan.local_inputs = static_cast<uint32_t>(from[6]);
  return plan;
}

}  // namespace

Wishes Agreement::settle(const Wishes& mine) {
  if (reducer_ == nullptr) return mine;
  std::array<float, kVotes> votes{};
  votes[kStop] = mine.stop ? 1.0f : 0.0f;
  votes[kStopEarly] = mine.stop_early ? 1.0f : 0.0f;
  const std::span<float> plan = std::span(votes).subspan<kPlan>();
  if (reducer_->rank() == 0 && mine.plan) write_plan(*mine.plan, plan);
  reducer_->all_reduce(votes);
  Wishes all{votes[kStop] > 0, votes[kStopEarly] > 0};
  if (plan[0] > 0) all.plan = read_plan(plan);
  return all;
}

void Agreement::check_start(uint64_t step) {
  if (reducer_ == nullptr) return;
  const auto mine = static_cast<float>(step);
  std::array<float, 2> sums{mine, mine * mine};
  reducer_->all_reduce(sums);
  const auto ranks = static_cast<float>(reducer_->replicas());
  if (sums[0] == ranks * mine && sums[1] == ranks * mine * mine) return;
  throw IoError("the replicas start from different steps, this one from " + std::to_string(step) +
                ": do they see the same checkpoints?");
}

}  // namespace outrigger::gpu_server
