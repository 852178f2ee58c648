#include "training/trainer/partial_fc.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "common/error.h"
#include "common/random.h"
#include "nn/graph_builder.h"

namespace outrigger::training {
namespace {

constexpr int64_t kLeastClasses = 2;  // of an ArcFace layer
// Ranks tell each other labels as floats, which are exact so far.
constexpr int64_t kMostClasses = int64_t{1} << 24;
// The order of samples draws classes too, by numbers that are smaller.
constexpr uint64_t kNotOfTheOrder = uint64_t{1} << 63;
constexpr size_t kTold = 3;  // numbers that ranks tell each other of a row

const nn::ArcFace& arcface_of(const nn::Graph& graph) {
  const auto* arcface = std::get_if<nn::ArcFace>(&graph.layers().back().operation);
  ensure(arcface != nullptr, "classes are shared out of an ArcFace layer");
  return *arcface;
}

const nn::Parameter& weight_of(const nn::Graph& graph) {
  const auto& layer = graph.layers().back();
  return graph.parameters()[static_cast<size_t>(layer.parameters.at(0))];
}

int64_t first_class(int64_t classes, uint32_t rank, uint32_t ranks) {
  return classes * rank / ranks;
}

int64_t checked_count(int64_t classes, uint32_t rank, uint32_t ranks) {
  if (classes < kLeastClasses * ranks)
    throw InvalidInput("spec.training.loss.arcFace.partialFC: the data has " +
                       std::to_string(classes) + " classes, and " + std::to_string(ranks) +
                       " ranks need two each");
  if (classes > kMostClasses)
    throw InvalidInput("spec.training.loss.arcFace.partialFC: the data has " +
                       std::to_string(classes) + " classes; at most " +
                       std::to_string(kMostClasses) + " can be shared out");
  return first_class(classes, rank + 1, ranks) - first_class(classes, rank, ranks);
}

// A network of its own: embeddings cross its only cut.
nn::Graph shard_graph(const nn::ArcFace& whole, int64_t width, int64_t classes) {
  const auto channels = static_cast<size_t>(width);
  nn::GraphBuilder builder("classes", {1, 1, width});
  builder.add("input",
              nn::Normalize{std::vector<float>(channels, 0), std::vector<float>(channels, 1)});
  builder.add("embedding", nn::Flatten{});
  builder.add("head", nn::ArcFace{classes, whole.margin, whole.scale});
  return builder.build();
}

}  // namespace

// All of a micro-batch's own classes may lie with one rank.
int64_t classes_compared(double sample_rate, int64_t classes, int64_t rows) {
  const auto wanted = static_cast<int64_t>(std::ceil(sample_rate * static_cast<double>(classes)));
  return std::min(classes, std::max({wanted, std::min(rows, classes), kLeastClasses}));
}

PartialFc::PartialFc(const PartialFcOptions& options, const nn::Graph& graph,
                     const nn::Backend& backend, ThreadPool& threads, Reducer* reducer)
    : options_(options),
      reducer_(reducer),
      ranks_(reducer == nullptr ? 1 : reducer->replicas()),
      rank_(reducer == nullptr ? 0 : reducer->rank()),
      range_(weight_of(graph).range),
      trains_(weight_of(graph).trainable),
      width_(weight_of(graph).shape.back()),
      first_(first_class(arcface_of(graph).classes, rank_, ranks_)),
      count_(checked_count(arcface_of(graph).classes, rank_, ranks_)),
      compared_(classes_compared(options.sample_rate, count_, options.micro_batch * ranks_)),
      graph_(shard_graph(arcface_of(graph), width_, compared_)),
      program_(backend.compile(graph_,
                               {.segment = {graph_.size() - 1, graph_.size()},
                                .batch = options.micro_batch * ranks_,
                                .input_gradient = true},
                               threads)),
      weights_(program_->new_weights()),
      tape_(program_->new_tape()),
      gathered_(rows() * (width() + 1)),
      labels_(rows()),
      classes_(static_cast<size_t>(compared_)),
      places_(static_cast<size_t>(count_)),
      packed_(compared_ == count_ ? 0 : static_cast<size_t>(compared_ * width_)),
      exchanged_(rows() * kTold * ranks_),
      slots_(rows()),
      features_(ElementType::kFloat32, {options.micro_batch * ranks_, width_}),
      features_gradient_(ElementType::kFloat32, features_.shape()),
      logits_(ElementType::kFloat32, {options.micro_batch * ranks_, compared_}),
      step_gradients_(static_cast<size_t>(compared_ * width_)),
      gradients_(static_cast<size_t>(count_ * width_)),
      touched_(static_cast<size_t>(count_)) {
  ensure(range_.end() == graph.parameter_count(), "the classes' weights are the arena's end");
}

std::span<const float> PartialFc::own(std::span<const float> arena) const {
  return arena.subspan(static_cast<size_t>(range_.offset + first_ * width_),
                       static_cast<size_t>(count_ * width_));
}

// Every rank fills its own part, the others' are zero.
void PartialFc::gather_batch(const MicroBatch& batch) {
  const auto own_rows = static_cast<size_t>(options_.micro_batch);
  ensure(batch.labels.size() == own_rows &&
             batch.features.shape == Shape{options_.micro_batch, width_},
         "a micro-batch has an embedding and a label for each sample");
  std::ranges::fill(gathered_, 0.0f);
  const float* features = batch.features.as<float>().data();
  for (size_t i = 0; i < own_rows; ++i) {
    float* row = gathered_.data() + (rank_ * own_rows + i) * (width() + 1);
    std::copy_n(features + i * width(), width(), row);
    row[width()] = static_cast<float>(batch.labels[i]);
  }
  all_reduce(gathered_);
  const std::span<float> all = features_.as<float>();
  for (size_t i = 0; i < rows(); ++i) {
    const float* row = gathered_.data() + i * (width() + 1);
    std::copy_n(row, width(), all.data() + i * width());
    labels_[i] = static_cast<int32_t>(row[width()]);
  }
}

// The classes of the samples, and of the others each set of the wanted size with equal chance
// (Knuth, The Art of Computer Programming 3.4.2, algorithm S).
void PartialFc::choose(uint64_t step, uint32_t index) {
  std::ranges::fill(places_, -1);
  int64_t wanted = compared_;
  for (const int32_t label : labels_) {
    if (label < first_ || label >= first_ + count_) continue;
    int32_t& place = places_[static_cast<size_t>(label - first_)];
    if (place < 0) --wanted;
    place = 0;
  }
  int64_t left = count_ - (compared_ - wanted);
  RandomStream random(options_.seed, RandomUse::kClassBalance, kNotOfTheOrder | step,
                      index * ranks_ + rank_);
  int32_t next = 0;
  for (int32_t k = 0; k < count_; ++k) {
    int32_t& place = places_[static_cast<size_t>(k)];
    if (place < 0) {
      const bool taken = wanted == left ||
                         static_cast<int64_t>(random.below64(static_cast<uint64_t>(left))) < wanted;
      --left;
      if (!taken) continue;
      --wanted;
    }
    classes_[static_cast<size_t>(next)] = k;
    place = next++;
  }
  for (int32_t& label : labels_) {
    const bool here = label >= first_ && label < first_ + count_;
    label = here ? places_[static_cast<size_t>(label - first_)] : -1;
  }
}

void PartialFc::load(std::span<const float> parameters) {
  const std::span<const float> mine = own(parameters);
  if (compared_ == count_) {
    if (!loaded_) program_->load(*weights_, mine, {});
    loaded_ = true;
    return;
  }
  for (size_t i = 0; i < classes_.size(); ++i)
    std::copy_n(mine.data() + static_cast<size_t>(classes_[i]) * width(), width(),
                packed_.data() + i * width());
  program_->load(*weights_, packed_, {});
}

nn::LossResult PartialFc::run(const MicroBatch& batch, std::span<const float> parameters,
                              const TensorView& gradient) {
  gather_batch(batch);
  choose(batch.step, batch.index);
  load(parameters);
  program_->forward(*weights_, *tape_,
                    {features_.view(), static_cast<int64_t>(rows()), slots_, labels_},
                    {logits_.view(), {}});
  const auto losses = softmax();
  program_->backward(*weights_, *tape_, logits_.view(),
                     {features_gradient_.view(), step_gradients_});
  keep_gradients();
  // Each rank has what its classes want of all samples.
  const std::span<float> all = features_gradient_.as<float>();
  all_reduce(all);
  const size_t mine = static_cast<size_t>(options_.micro_batch) * width();
  std::ranges::copy(all.subspan(rank_ * mine, mine), gradient.as<float>().begin());
  return losses[rank_];
}

std::vector<nn::LossResult> PartialFc::softmax() {
  std::ranges::fill(exchanged_, 0.0f);
  float* logits = logits_.as<float>().data();
  const auto columns = static_cast<size_t>(compared_);
  for (size_t i = 0; i < rows(); ++i) {
    const std::span row(logits + i * columns, columns);
    float* told = exchanged_.data() + (rank_ * rows() + i) * kTold;
    told[0] = std::ranges::max(row);
    double sum = 0;
    for (const float value : row) sum += std::exp(double{value} - told[0]);
    told[1] = static_cast<float>(sum);
    if (labels_[i] >= 0) told[2] = row[static_cast<size_t>(labels_[i])];
  }
  all_reduce(exchanged_);
  std::vector<nn::LossResult> losses(ranks_);
  for (size_t i = 0; i < rows(); ++i) {
    const auto told = [&](size_t rank) { return exchanged_.data() + (rank * rows() + i) * kTold; };
    float largest = told(0)[0];
    float own_logit = 0;
    for (size_t rank = 0; rank < ranks_; ++rank) {
      largest = std::max(largest, told(rank)[0]);
      own_logit += told(rank)[2];
    }
    double sum = 0;
    for (size_t rank = 0; rank < ranks_; ++rank)
      sum += told(rank)[1] * std::exp(double{told(rank)[0]} - largest);
    nn::LossResult& loss = losses[i / static_cast<size_t>(options_.micro_batch)];
    loss.loss_sum += std::log(sum) + largest - own_logit;
    loss.correct += own_logit == largest ? 1 : 0;
    float* row = logits + i * columns;
    for (size_t k = 0; k < columns; ++k)
      row[k] = static_cast<float>(std::exp(double{row[k]} - largest) / sum);
    if (labels_[i] >= 0) row[labels_[i]] -= 1.0f;
  }
  return losses;
}

void PartialFc::keep_gradients() {
  if (!trains_) return;
  for (size_t i = 0; i < classes_.size(); ++i) {
    const auto k = static_cast<size_t>(classes_[i]);
    touched_[k] = true;
    const float* from = step_gradients_.data() + i * width();
    float* to = gradients_.data() + k * width();
    for (size_t j = 0; j < width(); ++j) to[j] += from[j];
  }
}

double PartialFc::finish_gradients(float mean) {
  double squares = 0;
  for (size_t k = 0; k < touched_.size(); ++k) {
    if (!touched_[k]) continue;
    for (float& value : std::span(gradients_).subspan(k * width(), width())) {
      value *= mean;
      squares += double{value} * value;
    }
  }
  float told = static_cast<float>(squares);
  all_reduce({&told, 1});
  return double{told};
}

void PartialFc::update(const nn::SgdOptions& options, float learning_rate, float shrink,
                       std::span<float> momentum, std::span<float> parameters) {
  const auto begin = static_cast<size_t>(range_.offset + first_ * width_);
  for (size_t k = 0; k < touched_.size(); ++k) {
    if (!touched_[k]) continue;
    const std::span gradient = std::span(gradients_).subspan(k * width(), width());
    for (float& value : gradient) value *= shrink;
    const size_t row = begin + k * width();
    nn::sgd_values(options, {.learning_rate = learning_rate, .decay = options.weight_decay},
                   gradient, momentum.subspan(row, width()), parameters.subspan(row, width()));
    std::ranges::fill(gradient, 0.0f);
    touched_[k] = false;
  }
  loaded_ = false;
}

void PartialFc::gather(std::span<float> arena) {
  if (reducer_ == nullptr || arena.empty()) return;
  const std::span all = arena.subspan(static_cast<size_t>(range_.offset));
  const auto before = static_cast<size_t>(first_ * width_);
  std::ranges::fill(all.first(before), 0.0f);
  std::ranges::fill(all.subspan(before + gradients_.size()), 0.0f);
  all_reduce(all);
}

}  // namespace outrigger::training
