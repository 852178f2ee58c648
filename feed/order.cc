#include "feed/order.h"

#include <algorithm>
#include <numeric>

#include "common/error.h"
#include "common/random.h"

namespace outrigger::feed {
namespace {

void shuffle(std::span<uint32_t> values, RandomStream& random) {
  for (size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.below(static_cast<uint32_t>(i))]);
  }
}

}  // namespace

SampleOrder::SampleOrder(OrderOptions options) : options_(std::move(options)) {
  ensure(options_.samples > 0, "an order of no samples");
  if (options_.sampling != Sampling::kClassBalanced) return;
  ensure(options_.labels.size() == options_.samples, "one label per sample");
  std::map<int32_t, std::vector<uint32_t>> classes;
  for (uint32_t i = 0; i < options_.samples; ++i) classes[options_.labels[i]].push_back(i);
  for (auto& entry : classes) by_class_.push_back(std::move(entry.second));
}

uint32_t SampleOrder::at(uint64_t slot, uint32_t broken) {
  if (broken > 0)
    return RandomStream(options_.seed, RandomUse::kReplacement, slot, broken)
        .below(options_.samples);
  if (options_.sampling == Sampling::kClassBalanced) return balanced(slot);
  return epoch(epoch_of(slot))[slot % options_.samples];
}

uint32_t SampleOrder::balanced(uint64_t slot) const {
  RandomStream random(options_.seed, RandomUse::kClassBalance, slot);
  const auto& members = by_class_[random.below(static_cast<uint32_t>(by_class_.size()))];
  return members[random.below(static_cast<uint32_t>(members.size()))];
}

const std::vector<uint32_t>& SampleOrder::epoch(uint64_t number) {
  const auto found = epochs_.find(number);
  if (found != epochs_.end()) return found->second;
  // A batch straddles at most two neighbouring epochs, and steps drawn ahead lie behind the present
  // one.
  if (epochs_.size() >= 2)
    epochs_.erase(number < epochs_.begin()->first ? std::prev(epochs_.end()) : epochs_.begin());
  return epochs_[number] =
             options_.window ? windowed_permutation(number) : full_permutation(number);
}

std::vector<uint32_t> SampleOrder::full_permutation(uint64_t number) const {
  std::vector<uint32_t> order(options_.samples);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random(options_.seed, RandomUse::kEpochOrder, number);
  shuffle(order, random);
  return order;
}

std::vector<uint32_t> SampleOrder::windowed_permutation(uint64_t number) const {
  auto starts = options_.block_starts;
  if (starts.empty()) starts.push_back(0);
  std::vector<uint32_t> blocks(starts.size());
  std::iota(blocks.begin(), blocks.end(), 0u);
  RandomStream random(options_.seed, RandomUse::kEpochOrder, number);
  shuffle(blocks, random);

  std::vector<uint32_t> order;
  order.reserve(options_.samples);
  std::vector<uint32_t> buffer;
  const size_t window = std::max<uint32_t>(1, *options_.window);
  const auto draw = [&] {
    std::swap(buffer[random.below(static_cast<uint32_t>(buffer.size()))], buffer.back());
    order.push_back(buffer.back());
    buffer.pop_back();
  };
  for (const uint32_t block : blocks) {
    const uint32_t end = block + 1 < starts.size() ? starts[block + 1] : options_.samples;
    for (uint32_t sample = starts[block]; sample < end; ++sample) {
      buffer.push_back(sample);
      if (buffer.size() >= window) draw();
    }
  }
  while (!buffer.empty()) draw();
  return order;
}

}  // namespace outrigger::feed
