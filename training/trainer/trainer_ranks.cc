#include <memory>
#include <vector>

#include "training/trainer/trainer.h"

/// The trainer's part in a job of several ranks.
namespace outrigger::training {

bool Trainer::join_ranks() {
  if (device_.resident() == nullptr || ranks() == 1 || local_steps()) return false;
  return device_.resident()->join(
      {.rank = static_cast<int>(reducer_->rank()),
       .size = static_cast<int>(reducer_->replicas()),
       .limit = options_.rank_limit,
       .bfloat16 = options_.bfloat16_all_reduce,
       .from_first = [this](std::span<std::byte> bytes) { reducer_->broadcast(bytes); }});
}

std::unique_ptr<GradientSums> Trainer::make_sums() {
  if (ranks() == 1 || local_steps() || device_.resident() != nullptr) return nullptr;
  return std::make_unique<GradientSums>(
      *reducer_, gradients_, GradientSumsOptions{.bfloat16 = options_.bfloat16_all_reduce});
}

bool Trainer::local_steps() const { return options_.sync_every > 1 && ranks() > 1; }

bool Trainer::synchronized() const {
  return !local_steps() || state_.step % options_.sync_every == 0 ||
         state_.step == options_.total_steps;
}

uint64_t Trainer::batch_size() const {
  return static_cast<uint64_t>(options_.device.micro_batch) * options_.micro_batches *
         (local_steps() ? 1 : ranks());
}

void Trainer::reduce(Sums& sums) {
  if (ranks() == 1 || local_steps()) return;
  reduce_gradients();
  reducer_->all_reduce(statistics_);  // every rank fills its own part, the others' are zero
  float told[2] = {static_cast<float>(sums.loss), static_cast<float>(sums.correct)};
  reducer_->all_reduce(told);
  sums.loss = static_cast<double>(told[0]);
  sums.correct = static_cast<int64_t>(told[1]);
}

void Trainer::reduce_gradients() {
  if (sums_on_device_) {
    device_.resident()->sum_over_ranks();
    return;
  }
  if (sums_) {
    sums_->wait();
    return;
  }
  device_.resident()->fetch_gradients(gradients_);
  if (options_.bfloat16_all_reduce) {
    reducer_->all_reduce_bfloat16(gradients_);
  } else {
    reducer_->all_reduce(gradients_);
  }
  device_.resident()->put_gradients(gradients_);
}

// Momentum too: one that belongs to other weights would throw them off.
void Trainer::average_over_ranks() {
  TrainingState& mine = state();
  const float part = 1.0f / static_cast<float>(ranks());
  for (std::vector<float>* values :
       {&mine.parameters, &mine.momentum, &mine.averaged, &mine.buffers}) {
    reducer_->all_reduce(*values);
    for (float& value : *values) value *= part;
  }
  if (device_.resident() != nullptr)
    device_.resident()->put({mine.parameters, mine.momentum, mine.averaged});
}

}  // namespace outrigger::training
