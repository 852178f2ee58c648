#include "gpu-server/server_feed.h"

#include <utility>

#include "common/log.h"
#include "gpu-server/delivery.h"
#include "gpu-server/worker_session.h"

namespace outrigger::gpu_server {

ServerFeed::ServerFeed(feed::Coordinator coordinator, JoinTerms terms, worker::WireContext context,
                       const Clock& clock, telemetry::Trace& trace)
    : terms_(std::move(terms)),
      context_(context),
      clock_(clock),
      trace_(trace),
      timeline_(trace),
      coordinator_(std::move(coordinator)) {}

ServerFeed::~ServerFeed() {
  std::list<std::unique_ptr<WorkerSession>> sessions;
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    joined_.clear();
    sessions = std::move(sessions_);
  }
  sessions.clear();  // without the lock: their threads may want it to say that they are over
}

// ---- sessions

void ServerFeed::serve(std::unique_ptr<transport::Link> link) {
  auto session = std::make_unique<WorkerSession>(*this, std::move(link), false);
  const std::scoped_lock lock(mutex_);
  sessions_.push_back(std::move(session));
}

void ServerFeed::serve_local(std::unique_ptr<transport::Link> link) {
  auto session = std::make_unique<WorkerSession>(*this, std::move(link), true);
  const std::scoped_lock lock(mutex_);
  sessions_.push_back(std::move(session));
}

feed::WorkerId ServerFeed::add_worker(const feed::WorkerTraits& traits, WorkerSession& session,
                                      const WorkerBook& book) {
  const std::scoped_lock lock(mutex_);
  if (closing_) throw Cancelled("the server ends");
  const feed::WorkerId id = coordinator_.add_worker(traits, clock_.now());
  joined_[id] = &session;
  books_.emplace(id, book);
  timeline_.joined(id, session.name());
  distribute();
  return id;
}

void ServerFeed::tell_what_is_given_back(feed::WorkerId worker) {
  const auto session = joined_.find(worker);
  if (session == joined_.end() || session->second->local()) return;
  std::string text;
  for (const auto& [state, count] : coordinator_.ledger().held_by(worker))
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + feed::to_string(state);
  if (!text.empty()) log::info("worker {} gives back {}", session->second->name(), text);
}

void ServerFeed::lose_worker(feed::WorkerId worker) {
  const std::scoped_lock lock(mutex_);
  tell_what_is_given_back(worker);
  joined_.erase(worker);
  books_.erase(worker);
  coordinator_.lose_worker(worker, clock_.now());
  distribute();
  changed_.notify_all();
}

void ServerFeed::receive(feed::WorkerId worker, feed::WorkerMessage message) {
  const std::scoped_lock lock(mutex_);
  if (const auto book = books_.find(worker); book != books_.end()) {
    book->second.note(message);
    timeline_.arrived(worker, message, measures_of(worker), clock_.now());
  }
  if (std::holds_alternative<feed::Leaving>(message)) tell_what_is_given_back(worker);
  coordinator_.receive(worker, std::move(message), clock_.now());
  distribute();
  changed_.notify_all();
}

void ServerFeed::distribute() {
  for (auto& out : coordinator_.take_outbox()) {
    const auto session = joined_.find(out.to);
    if (session != joined_.end()) session->second->post(std::move(out.message));
  }
}

void ServerFeed::reap() {
  std::list<std::unique_ptr<WorkerSession>> over;
  {
    const std::scoped_lock lock(mutex_);
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      const auto next = std::next(at);
      if ((*at)->over()) over.splice(over.end(), sessions_, at);
      at = next;
    }
  }
  over.clear();
}

void ServerFeed::cancel() {
  const std::scoped_lock lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

void ServerFeed::say_farewell(const feed::Farewell& farewell) {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    for (const auto& session : sessions_) session->finish(farewell);
  }
  const TimePoint give_up = clock_.now() + std::chrono::seconds(2);
  std::unique_lock lock(mutex_);
  while (!joined_.empty() && clock_.now() < give_up)
    changed_.wait_for(lock, std::chrono::milliseconds(50));
}

FeedSnapshot ServerFeed::snapshot() {
  const std::scoped_lock lock(mutex_);
  FeedSnapshot snapshot;
  for (const auto& joined : joined_) {
    if (joined.second->local()) continue;
    ++snapshot.workers;
    snapshot.worker_names.push_back(joined.second->name());
    const transport::LinkStats stats = joined.second->stats();
    snapshot.bytes_in += stats.bytes_received;
    snapshot.bytes_out += stats.bytes_sent;
  }
  snapshot.second_leases = coordinator_.second_leases();
  snapshot.dropped_results = coordinator_.dropped_results();
  snapshot.replaced_samples = coordinator_.replacements().size();
  return snapshot;
}

ServerFeed::Measures ServerFeed::measures() {
  const std::scoped_lock lock(mutex_);
  Measures measures;
  for (const auto& [id, book] : books_) {
    if (joined_.at(id)->local()) {
      measures.local = book.measures({});
    } else {
      measures.workers.push_back(measures_of(id));
    }
  }
  return measures;
}

WorkerMeasures ServerFeed::measures_of(feed::WorkerId worker) const {
  const WorkerSession& session = *joined_.at(worker);
  if (session.local()) return {};
  WorkerMeasures measures = books_.at(worker).measures(session.stats());
  measures.name = session.name();
  return measures;
}

std::vector<feed::Replacement> ServerFeed::replacements() {
  const std::scoped_lock lock(mutex_);
  return coordinator_.replacements();
}

// ---- the trainer

template <typename Answer>
auto ServerFeed::wait_for(const Wanted& wanted, const Answer& answer) {
  constexpr Duration kTick = std::chrono::milliseconds(20);
  const auto span = trace_.span(
      wanted.what, 1, wanted.step ? static_cast<int64_t>(*wanted.step) : -1, wanted.index);
  std::unique_lock lock(mutex_);
  const TimePoint asked = clock_.now();
  timeline_.device_is_done(asked);
  wanted_ = wanted;
  while (true) {
    if (cancelled_) throw Cancelled("the run was asked to stop");
    coordinator_.tick(clock_.now());
    auto result = answer();
    distribute();
    if (result) {
      note_wait(wanted, clock_.now() - asked);
      wanted_.reset();
      ++handed_out_;
      if (wanted.device) timeline_.device_takes(*wanted.step, wanted.index, clock_.now());
      return result;
    }
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
  return {coordinator_.order().broken().begin(), coordinator_.order().broken().end()};
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
