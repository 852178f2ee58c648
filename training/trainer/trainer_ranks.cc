#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "training/trainer/trainer.h"

/// The trainer's part in a job of several ranks.
namespace outrigger::training {
namespace {

// Neighbours are joined.
void append(nn::Range range, std::vector<nn::Range>& ranges) {
  if (!ranges.empty() && ranges.back().end() == range.offset) {
    ranges.back().size += range.size;
  } else {
    ranges.push_back(range);
  }
}

std::vector<nn::Range> trained_parameters(const nn::Graph& graph) {
  std::vector<nn::Range> ranges;
  for (const nn::Parameter& parameter : graph.parameters()) {
    if (parameter.trainable) append(parameter.range, ranges);
  }
  return ranges;
}

std::vector<nn::Range> measured_buffers(const nn::Graph& graph) {
  std::vector<nn::Range> ranges;
  for (const nn::NormBuffer& buffer : graph.buffers()) {
    if (!graph.layers()[static_cast<size_t>(buffer.layer)].frozen) append(buffer.range, ranges);
  }
  return ranges;
}

}  // namespace

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
      *reducer_, gradients_,
      GradientSumsOptions{.bucket = options_.gradient_bucket,
                          .bfloat16 = options_.bfloat16_all_reduce});
}

// Before the cut more is to come where stems are away, and what waits for those.
GradientsReady Trainer::add_when_ready(const feed::Plan& plan) {
  if (!sums_) return {};
  const bool waits = plan.here_last > 0 || std::ranges::find(stem_away_, true) != stem_away_.end();
  return [this, least = waits ? static_cast<int64_t>(plan.stem_parameters) : 0](
             std::span<const float> gradients, int64_t first) {
    first = std::max(first, least);
    if (first >= added_from_) return;
    add(gradients, {first, added_from_ - first});
    added_from_ = first;
    sums_->ready_from(static_cast<size_t>(first));
  };
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

// What is frozen is the same on all ranks, and the mean of equal floats need not be that float:
// workers keep the frozen stem as it was when the run began. Momentum goes too: one that belongs to
// other weights would throw them off.
void Trainer::average_over_ranks() {
  TrainingState& mine = state();
  const std::vector<nn::Range> parameters = trained_parameters(graph_);
  for (std::vector<float>* values : {&mine.parameters, &mine.momentum, &mine.averaged})
    average(*values, parameters);
  average(mine.buffers, measured_buffers(graph_));
  if (float16()) agree_on_loss_scale();
  if (device_.resident() != nullptr)
    device_.resident()->put({mine.parameters, mine.momentum, mine.averaged});
}

void Trainer::average(std::vector<float>& values, std::span<const nn::Range> ranges) {
  if (values.empty()) return;
  std::vector<float> packed;
  for (const nn::Range range : ranges) {
    const auto part = nn::part_of(std::span<const float>(values), range);
    packed.insert(packed.end(), part.begin(), part.end());
  }
  reducer_->all_reduce(packed);
  const float part = 1.0f / static_cast<float>(ranks());
  auto sum = packed.begin();
  for (const nn::Range range : ranges) {
    for (float& value : nn::part_of(std::span(values), range)) value = *sum++ * part;
  }
}

// The least, which all ranks' gradients have passed: a checkpoint has room for one.
void Trainer::agree_on_loss_scale() {
  std::vector<float> told(size_t{2} * ranks());
  const std::span values = std::span(told).first(ranks());
  const std::span good_steps = std::span(told).last(ranks());
  values[reducer_->rank()] = state_.loss_scale.value;
  good_steps[reducer_->rank()] = static_cast<float>(state_.loss_scale.good_steps);
  reducer_->all_reduce(told);
  state_.loss_scale = {.value = std::ranges::min(values),
                       .good_steps = static_cast<int64_t>(std::ranges::min(good_steps))};
}

}  // namespace outrigger::training
