#include "gpu-server/links/server_feed.h"

#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "common/log.h"
#include "gpu-server/links/worker_session.h"

namespace outrigger::gpu_server {
namespace {

/// What a link takes time for.
bool is_drawn(const feed::ServerMessage& message) {
  return std::holds_alternative<feed::StemWeights>(message) ||
         std::holds_alternative<feed::CutGradient>(message);
}

}  // namespace

ServerFeed::ServerFeed(feed::Coordinator coordinator, JoinTerms terms, worker::WireContext context,
                       const Clock& clock, telemetry::Trace& trace)
    : terms_(std::move(terms)),
      context_(context),
      clock_(clock),
      trace_(trace),
      timeline_(trace),
      coordinator_(std::move(coordinator)) {
  coordinator_.expect(terms_.crossings);
}

ServerFeed::~ServerFeed() {
  std::list<std::unique_ptr<WorkerSession>> sessions;
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    joined_.clear();
    books_.clear();
    sessions = std::move(sessions_);
  }
  sessions.clear();  // without the lock: their threads may want it to say that they are over
}

void ServerFeed::serve(std::unique_ptr<transport::Link> link) {
  std::unique_ptr<WorkerSession> session;
  try {
    session = std::make_unique<WorkerSession>(*this, std::move(link), false);
  } catch (const std::system_error& error) {
    throw IoError(std::string("no thread for one more worker: ") + error.what());
  }
  const std::scoped_lock lock(mutex_);
  sessions_.push_back(std::move(session));
}

void ServerFeed::serve_local(std::unique_ptr<transport::Link> link, const ProcessorClock& worker) {
  auto session = std::make_unique<WorkerSession>(*this, std::move(link), true);
  const std::scoped_lock lock(mutex_);
  own_worker_ = worker;
  sessions_.push_back(std::move(session));
}

void ServerFeed::fail_local(std::exception_ptr failure) {
  const std::scoped_lock lock(mutex_);
  own_failure_ = std::move(failure);
  changed_.notify_all();
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

void ServerFeed::tell_of_failed_read(feed::WorkerId worker, const feed::ReadFailed& failed) {
  const WorkerSession& session = *joined_.at(worker);
  if (session.local()) return;  // it logs here itself
  constexpr Duration kEvery = std::chrono::seconds(30);
  FailedReads& reads = failed_reads_[worker];
  const TimePoint now = clock_.now();
  if (reads.told_at && now < *reads.told_at + kEvery) {
    ++reads.untold;
    return;
  }
  reads.told_at = now;
  const uint64_t untold = std::exchange(reads.untold, 0);
  const bool evaluation = failed.key.step >= feed::kFirstEvaluation;
  log::warning("worker {} could not read: {}{}{}", session.name(), failed.reason,
               evaluation ? "; it evaluates no more for a while" : "",
               untold > 0 ? fmt::format(" ({} more failed since the last such line)", untold) : "");
}

void ServerFeed::lose_worker(feed::WorkerId worker) {
  const std::scoped_lock lock(mutex_);
  tell_what_is_given_back(worker);
  if (const auto session = joined_.find(worker); session != joined_.end()) {
    if (!session->second->local()) past_traffic_.add(session->second->stats());
    joined_.erase(session);
  }
  books_.erase(worker);
  failed_reads_.erase(worker);
  timeline_.left(worker);
  coordinator_.lose_worker(worker, clock_.now());
  distribute();
  changed_.notify_all();
}

void ServerFeed::receive(feed::WorkerId worker, feed::WorkerMessage message) {
  std::unique_lock lock(mutex_);
  if (!joined_.contains(worker)) return;  // this ends, and its session is not over yet
  if (books_.at(worker).note(message)) joined_.at(worker)->measure_link_anew();
  timeline_.arrived(worker, message, measures_of(worker), clock_.now());
  if (std::holds_alternative<feed::Leaving>(message)) tell_what_is_given_back(worker);
  if (const auto* failed = std::get_if<feed::ReadFailed>(&message))
    tell_of_failed_read(worker, *failed);
  coordinator_.receive(worker, std::move(message), clock_.now());
  distribute(joined_.at(worker));
  lock.unlock();
  changed_.notify_all();
}

void ServerFeed::distribute(const WorkerSession* caller) {
  std::set<WorkerSession*> posted_to;
  for (auto& out : coordinator_.take_outbox()) {
    const auto session = joined_.find(out.to);
    if (session == joined_.end()) continue;
    if (is_drawn(out.message) && !session->second->local())
      timeline_.posted(out.to, out.message, measures_of(out.to), clock_.now());
    session->second->post(std::move(out.message));
    if (session->second != caller) posted_to.insert(session->second);
  }
  for (WorkerSession* session : posted_to) session->wake();
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
  Traffic traffic = past_traffic_;
  for (const auto& joined : joined_) {
    if (joined.second->local()) continue;
    ++snapshot.workers;
    snapshot.worker_names.push_back(joined.second->name());
    traffic.add(joined.second->stats());
  }
  snapshot.stem_workers = coordinator_.stem_workers();
  snapshot.bytes_in = traffic.in;
  snapshot.bytes_out = traffic.out;
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

}  // namespace outrigger::gpu_server
