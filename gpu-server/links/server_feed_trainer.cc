#include <exception>
#include <string>
#include <utility>

#include "common/error.h"
#include "gpu-server/links/delivery.h"
#include "gpu-server/links/server_feed.h"
#include "gpu-server/links/worker_session.h"

/// The feed as the trainer sees it.
namespace outrigger::gpu_server {
namespace {

/// What is invalid there is no data set of the user's: the run must not end as if it were.
[[noreturn]] void rethrow_of_local_worker(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const InvalidInput& error) {
    throw Error(std::string("the local worker ended: ") + error.what());
  }
}

}  // namespace

template <typename Answer>
auto ServerFeed::wait_for(const Wanted& wanted, const Answer& answer) {
  constexpr Duration kTick = std::chrono::milliseconds(20);
  const auto span = trace_.span(
      wanted.what, 1, wanted.step ? static_cast<int64_t>(*wanted.step) : -1, wanted.index);
  std::unique_lock lock(mutex_);
  const TimePoint asked = clock_.now();
  timeline_.device_is_done(asked);
  const auto own_work = [this] { return own_worker_ ? own_worker_->now() : Duration{0}; };
  const Duration before = own_work();
  wanted_ = wanted;
  while (true) {
    if (cancelled_) throw Cancelled("the run was asked to stop");
    coordinator_.tick(clock_.now());
    auto result = answer();
    distribute();
    if (result) {
      note_wait(wanted, clock_.now() - asked);
      own_work_in_waits_ = own_work_in_waits_.load() + own_work() - before;
      wanted_.reset();
      ++handed_out_;
      if (wanted.device) timeline_.device_takes(*wanted.step, wanted.index, clock_.now());
      return result;
    }
    if (own_failure_ && joined_.empty()) rethrow_of_local_worker(own_failure_);
    changed_.wait_for(lock, kTick);
  }
}

void ServerFeed::note_wait(const Wanted& wanted, Duration waited) {
  if (!wanted.step) return;
  const auto& step = coordinator_.ledger().steps().at(*wanted.step);
  const feed::WorkItem& item = step.at(wanted.index);
  WorkerMeasures source;
  const auto session = item.source ? joined_.find(item.source->worker) : joined_.end();
  const bool remote = session != joined_.end() && !session->second->local();
  if (remote) source = measures_of(session->first);
  const feed::Plan& plan = coordinator_.newest_plan();
  const auto stem_bytes =
      static_cast<double>(sizeof(float) * (plan.stem_parameters + plan.stem_buffers));
  feed::add_wait(std::chrono::duration<double>(waited).count(),
                 delivery_of(item, remote ? &source : nullptr, stem_bytes), stalls_);
}

feed::StallTimes ServerFeed::take_stalls() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(stalls_, {});
}

std::string ServerFeed::describe_wait() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return "the feed is at work";
  if (!wanted_) return "the device is at work, or a file is being written";
  std::string text = std::string(wanted_->what) + " " + std::to_string(wanted_->index);
  if (!wanted_->step) return text;
  text += " of step " + std::to_string(*wanted_->step);
  const auto step = coordinator_.ledger().steps().find(*wanted_->step);
  if (step == coordinator_.ledger().steps().end()) return text + ", which is not drawn";
  for (const feed::Holder& holder : step->second.at(wanted_->index).holders) {
    const auto session = joined_.find(holder.worker);
    text += ", leased to " + (session == joined_.end() ? "nobody" : session->second->name());
  }
  return text;
}

feed::Plan ServerFeed::plan_of(uint64_t step) {
  const std::scoped_lock lock(mutex_);
  if (cancelled_) throw Cancelled("the run was asked to stop");
  feed::Plan plan = coordinator_.plan_of(step, clock_.now());
  distribute();
  return plan;
}

void ServerFeed::set_plan(const feed::Plan& plan) {
  const std::scoped_lock lock(mutex_);
  coordinator_.set_plan(plan);
}

void ServerFeed::publish_stem(uint64_t version,
                              std::shared_ptr<const std::vector<float>> parameters,
                              std::shared_ptr<const std::vector<float>> buffers) {
  const std::scoped_lock lock(mutex_);
  coordinator_.publish_stem(version, std::move(parameters), std::move(buffers), clock_.now());
  distribute();
}

feed::ReadyMicroBatch ServerFeed::take(uint64_t step, uint32_t index) {
  return std::move(*wait_for({"wait for micro-batch", step, index, true},
                             [&] { return coordinator_.try_take(step, index, clock_.now()); }));
}

std::optional<feed::ReadyMicroBatch> ServerFeed::take_if_there(uint64_t step, uint32_t index) {
  const std::scoped_lock lock(mutex_);
  if (cancelled_ || !coordinator_.ledger().has_result(step, index)) return std::nullopt;
  auto result = coordinator_.try_take(step, index, clock_.now());
  distribute();
  ++handed_out_;
  return result;
}

void ServerFeed::head_done(uint64_t step, uint32_t index,
                           std::shared_ptr<const Tensor> cut_gradient) {
  const std::scoped_lock lock(mutex_);
  timeline_.device_is_done(clock_.now());
  coordinator_.head_done(step, index, std::move(cut_gradient), clock_.now());
  distribute();
}

std::shared_ptr<const std::vector<float>> ServerFeed::take_gradient(uint64_t step, uint32_t index) {
  return wait_for({"wait for stem gradient", step, index},
                  [&] { return coordinator_.try_take_gradient(step, index, clock_.now()); });
}

std::vector<feed::AuditItem> ServerFeed::commit(uint64_t step) {
  const std::scoped_lock lock(mutex_);
  timeline_.device_is_done(clock_.now());
  auto audit = coordinator_.commit(step, clock_.now());
  distribute();
  return audit;
}

std::vector<uint32_t> ServerFeed::broken_samples() {
  const std::scoped_lock lock(mutex_);
  std::vector<uint32_t> ids;
  for (const auto& broken : coordinator_.broken()) ids.push_back(broken.first);
  return ids;
}

uint32_t ServerFeed::begin_evaluation(const data::Dataset& dataset, uint32_t batch) {
  const std::scoped_lock lock(mutex_);
  coordinator_.begin_evaluation(dataset, batch);
  return coordinator_.evaluation_batches();
}

feed::ReadyMicroBatch ServerFeed::take_evaluation(uint32_t index) {
  return std::move(*wait_for({"wait for evaluation batch", std::nullopt, index}, [&] {
    return coordinator_.try_take_evaluation(index, clock_.now());
  }));
}

void ServerFeed::end_evaluation() {
  const std::scoped_lock lock(mutex_);
  coordinator_.end_evaluation();
  distribute();
}

}  // namespace outrigger::gpu_server
