#include "training/trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/error.h"
#include "nn/graph_builder.h"
#include "training/chunks.h"

namespace outrigger::training {

Trainer::Trainer(TrainerOptions options, const nn::Graph& graph, const nn::Backend& backend,
                 ThreadPool& threads, feed::Feed& feed, const Clock& clock, TrainingState state,
                 Reducer* reducer)
    : options_(std::move(options)),
      graph_(graph),
      trunk_(options_.partial_fc ? nn::without_last_layer(graph) : graph),
      feed_(feed),
      clock_(clock),
      reducer_(reducer),
      state_(std::move(state)),
      classifier_(make_partial_fc(backend, threads)),
      device_(device_options(), trunk_, backend, threads),
      sums_on_device_(join_ranks()),
      gradients_(device_.resident() != nullptr &&
                         (reducer == nullptr || sums_on_device_ || local_steps())
                     ? 0
                     : static_cast<size_t>(trunk_.parameter_count())),
      sums_(make_sums()),
      statistics_(static_cast<size_t>(graph.buffer_count()) * options_.micro_batches *
                  (local_steps() ? 1 : ranks())),
      stem_away_(options_.micro_batches) {
  ensure(!float16() || (device_.resident() != nullptr && classifier_ == nullptr),
         "float16 is for devices that scale the loss");
  forget_former();  // of a run that had another staleness
  if (device_.resident() != nullptr)
    device_.resident()->put(
        {trunk_of(state_.parameters), trunk_of(state_.momentum), trunk_of(state_.averaged)});
  publish_frozen_stem();
}

void Trainer::set_plan(const feed::Plan& plan) { feed_.set_plan(plan); }

void Trainer::publish(uint64_t version, std::span<const float> parameters, uint64_t count) {
  feed_.publish_stem(version,
                     std::make_shared<const std::vector<float>>(
                         parameters.begin(), parameters.begin() + static_cast<ptrdiff_t>(count)),
                     std::make_shared<const std::vector<float>>(state_.buffers));
}

uint64_t Trainer::stem_version(uint64_t step) const {
  return step > options_.staleness ? step - options_.staleness : 0;
}

TrainingState& Trainer::state() {
  parameters();
  if (!others_fetched_)
    device_.resident()->fetch({{}, trunk_of(state_.momentum), trunk_of(state_.averaged)});
  others_fetched_ = true;
  return state_;
}

const std::vector<float>& Trainer::parameters() {
  if (!parameters_fetched_) device_.resident()->fetch({trunk_of(state_.parameters), {}, {}});
  parameters_fetched_ = true;
  return state_.parameters;
}

std::span<const float> Trainer::parameters_of(uint64_t version) {
  const auto former = state_.former_parameters.find(version);
  return former == state_.former_parameters.end() ? std::span<const float>(parameters())
                                                  : former->second;
}

// A classifier that ranks share out may lie behind them: it is the host's anyway.
std::span<const float> Trainer::first_parameters_of(uint64_t version, uint64_t count) {
  if (parameters_fetched_ || state_.former_parameters.contains(version))
    return parameters_of(version);
  const std::span<float> trunk = trunk_of(state_.parameters);
  const std::span<float> first = trunk.first(std::min<size_t>(count, trunk.size()));
  device_.resident()->fetch_parameters({0, static_cast<int64_t>(first.size())}, first);
  return state_.parameters;
}

std::span<const float> Trainer::stem_of(uint64_t version) {
  const bool present = !state_.former_parameters.contains(version);
  return present && device_.resident() != nullptr ? std::span<const float>()
                                                  : parameters_of(version);
}

uint64_t Trainer::most_stem_parameters() const {
  const auto all = static_cast<uint64_t>(graph_.parameter_count());
  return options_.most_stem_parameters > 0 ? options_.most_stem_parameters : all;
}

// The stems of all plans whose stems do not train.
void Trainer::publish_frozen_stem() {
  int32_t deepest = 0;
  for (const nn::Cut& cut : graph_.cuts()) {
    if (graph_.frozen_before(cut.layers)) deepest = cut.layers;
  }
  if (deepest == 0) return;
  const auto frozen = static_cast<uint64_t>(graph_.parameter_range({0, deepest}).size);
  publish(feed::kFrozenStem, state_.parameters, std::min(frozen, most_stem_parameters()));
}

// Under staleness the next step's version is known already: with it, workers run ahead.
void Trainer::publish_stems() {
  const uint64_t count = most_stem_parameters();
  const uint64_t newest = std::min(state_.step, stem_version(state_.step + 1));
  for (uint64_t version = stem_version(state_.step); version <= newest; ++version) {
    if (published_ && version <= *published_) continue;
    publish(version, first_parameters_of(version, count), count);
    published_ = version;
  }
}

StepReport Trainer::step() {
  const TimePoint start = clock_.now();
  StepReport report;
  report.step = state_.step;
  report.plan = feed_.plan_of(state_.step);
  if (report.plan.stem_trains && report.plan.cut > 0) publish_stems();
  device_.set_cut(report.plan.cut, report.plan.stem_trains);
  device_.load(stem_of(stem_version(state_.step)), state_.parameters, state_.buffers);
  if (device_.resident() != nullptr) {
    device_.set_loss_scale(float16() ? state_.loss_scale.value : 1.0f);
    device_.resident()->clear_gradients();
  }
  std::ranges::fill(gradients_, 0.0f);
  std::ranges::fill(statistics_, 0.0f);
  added_from_ = trunk_.parameter_count();

  Sums sums;
  run_micro_batches(report, sums);
  add_stem_gradients(report);
  const TimePoint gathered = clock_.now();
  reduce(sums);
  report.waited_for_ranks = clock_.now() - gathered;
  report.loss = sums.loss / static_cast<double>(batch_size());
  report.accuracy = static_cast<double>(sums.correct) / static_cast<double>(batch_size());
  update(report);
  report.audit = feed_.commit(report.step);
  if (device_.resident() != nullptr) report.device = device_.resident()->take_times();
  report.optimizer = clock_.now() - gathered;
  report.took = clock_.now() - start;
  return report;
}

void Trainer::run_micro_batches(StepReport& report, Sums& sums) {
  const feed::Plan& plan = report.plan;
  uint32_t first = 0;
  const auto run = [&](uint32_t count, int32_t cut) {
    if (count == 0) return;
    for (const uint32_t size : plan_chunks(count, device_.most_at_once(cut))) {
      start_chunk(first, size, report);
      first += size;
      while (device_.started() > device_.most_started()) collect_chunk(report, sums);
    }
  };
  run(plan.first_away(options_.micro_batches), 0);
  run(plan.stems_away, plan.cut);
  run(plan.here_last, 0);
  stage_next(report);
  while (device_.started() > 0) collect_chunk(report, sums);
}

feed::ReadyMicroBatch Trainer::take(uint32_t index, StepReport& report) {
  if (!next_.empty()) {
    feed::ReadyMicroBatch batch = std::move(next_.front());
    next_.pop_front();
    ensure(batch.step == report.step && batch.index == index, "what was taken ahead comes first");
    return batch;
  }
  const TimePoint asked = clock_.now();
  feed::ReadyMicroBatch batch = feed_.take(report.step, index);
  report.waited_for_input += clock_.now() - asked;
  return batch;
}

void Trainer::start_chunk(uint32_t first, uint32_t count, StepReport& report) {
  std::vector<feed::ReadyMicroBatch> batches;
  for (uint32_t index = first; index < first + count; ++index) {
    batches.push_back(take(index, report));
    stem_away_[index] = batches.back().cut > 0 && report.plan.stem_trains;
  }
  const uint32_t before =
      reducer_ == nullptr || local_steps() ? 0 : reducer_->rank() * options_.micro_batches;
  const auto columns = static_cast<size_t>(graph_.buffer_count());
  const bool last = first + count == options_.micro_batches;
  device_.start(batches,
                std::span(statistics_).subspan((before + first) * columns, count * columns),
                last && sums_on_device_ && report.plan.cut == 0,
                last ? add_when_ready(report.plan) : GradientsReady{});
}

void Trainer::collect_chunk(const StepReport& report, Sums& sums) {
  const ChunkResult result = device_.collect();
  if (!std::isfinite(result.loss.loss_sum)) {
    throw NumericalError("the loss is not a number at step " + std::to_string(report.step) +
                         ", micro-batch " + std::to_string(result.first) + " (slots from " +
                         std::to_string(result.first_slot) + ")" + advice());
  }
  sums.loss += result.loss.loss_sum;
  sums.correct += result.loss.correct;
  if (result.first + report.plan.here_last >= options_.micro_batches) {
    add_but_the_stem(result, report.plan);
  } else {
    add(result.gradients, rest_of(result.gradient_range));
  }
  for (uint32_t i = 0; i < result.cut_gradients.size(); ++i)
    feed_.head_done(report.step, result.first + i, result.cut_gradients[i]);
}

// While the device is at work on what it has, so that it need not wait for the host between steps.
void Trainer::stage_next(const StepReport& report) {
  if (device_.resident() == nullptr || report.plan.cut > 0 || !next_.empty()) return;
  const uint32_t wanted = plan_chunks(options_.micro_batches, device_.most_at_once(0)).front();
  for (uint32_t index = 0; index < wanted; ++index) {
    auto batch = feed_.take_if_there(report.step + 1, index);
    if (!batch) return;
    next_.push_back(std::move(*batch));
  }
  const feed::Plan next = feed_.plan_of(report.step + 1);
  if (next.cut > 0 || next.stem_trains != report.plan.stem_trains) return;
  const std::vector<feed::ReadyMicroBatch> batches(next_.begin(), next_.end());
  device_.stage(batches);
}

void Trainer::add_but_the_stem(const ChunkResult& result, const feed::Plan& plan) {
  if (result.gradients.empty()) return;  // the device has added them
  const auto stem = static_cast<int64_t>(plan.stem_parameters);
  const auto [offset, size] = result.gradient_range;
  const auto waits = nn::part_of(result.gradients, {0, stem});
  late_stems_[result.first].assign(waits.begin(), waits.end());
  add(result.gradients, rest_of({stem, offset + size - stem}));
}

// In the order of indexes: those of the device's own stems before the first that is away are in.
void Trainer::add_stem_gradients(StepReport& report) {
  if (report.plan.here_last == 0) late_stems_.clear();
  // Behind the cut nothing is added any more.
  if (sums_ && std::ranges::find(stem_away_, true) != stem_away_.end())
    sums_->ready_from(report.plan.stem_parameters);
  for (uint32_t index = 0; index < options_.micro_batches; ++index) {
    if (index + report.plan.here_last >= options_.micro_batches && !late_stems_.empty())
      add(late_stems_.at(index), {0, static_cast<int64_t>(report.plan.stem_parameters)});
    if (!stem_away_[index]) continue;
    const TimePoint asked = clock_.now();
    const auto gradients = feed_.take_gradient(report.step, index);
    report.waited_for_gradients += clock_.now() - asked;
    add(*gradients, {0, static_cast<int64_t>(gradients->size())});
  }
}

void Trainer::add(std::span<const float> gradients, nn::Range range) {
  if (gradients.empty()) return;  // the device has added them
  const bool whole = static_cast<int64_t>(gradients.size()) == trunk_.parameter_count();
  if (whole) gradients = nn::part_of(gradients, range);
  if (device_.resident() != nullptr) {
    device_.resident()->add_gradients(range, gradients);
    return;
  }
  float* to = gradients_.data() + range.offset;
  for (const float gradient : gradients) *to++ += gradient;
}

}  // namespace outrigger::training
