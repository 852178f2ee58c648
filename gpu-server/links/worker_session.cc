#include "gpu-server/links/worker_session.h"

#include <exception>
#include <utility>
#include <variant>

#include "common/log.h"
#include "common/thread_name.h"
#include "gpu-server/report/report_json.h"

namespace outrigger::gpu_server {

namespace {

/// Whether a message holds a tensor: packing and sending that takes its time.
bool takes_time(const feed::ServerMessage& message) {
  const auto* lease = std::get_if<feed::Lease>(&message);
  return std::holds_alternative<feed::StemWeights>(message) ||
         std::holds_alternative<feed::CutGradient>(message) ||
         (lease != nullptr && lease->cut_gradient != nullptr);
}

}  // namespace

WorkerSession::WorkerSession(ServerFeed& feed, std::unique_ptr<transport::Link> link, bool local)
    : feed_(feed), link_(std::move(link)), local_(local), name_(local ? "local" : link_->peer()) {
  sender_ = std::jthread([this](const std::stop_token& stop) { send_thread(stop); });
  receiver_ = std::jthread([this] { receive_thread(); });
}

WorkerSession::~WorkerSession() {
  link_->close("the server ends the session");
  receiver_ = {};
  sender_ = {};
}

void WorkerSession::post(feed::ServerMessage message) {
  const std::scoped_lock lock(mutex_);
  if (finishing_) return;
  pressing_ |= is_waited_for(message);
  const bool committed = std::holds_alternative<feed::Committed>(message);
  if (committed && !queue_.empty() && std::holds_alternative<feed::Committed>(queue_.back())) {
    queue_.back() = std::move(message);
    return;
  }
  queue_.push_back(std::move(message));
}

// A commit by which the worker may let go of stems is: it may hear of nothing else for long.
bool WorkerSession::is_waited_for(const feed::ServerMessage& message) {
  if (const auto* weights = std::get_if<feed::StemWeights>(&message);
      weights != nullptr &&
      (weights->version < feed::kFirstEvaluation || weights->version == feed::kFrozenStem))
    newest_stem_ = weights->version;
  const auto* committed = std::get_if<feed::Committed>(&message);
  if (committed == nullptr) return true;
  const bool holds_stems = newest_stem_.has_value();
  if (holds_stems && committed->oldest_version > *newest_stem_) newest_stem_.reset();
  return holds_stems;
}

void WorkerSession::wake() {
  {
    const std::scoped_lock lock(mutex_);
    if (!pressing_) return;
  }
  // Whoever wakes finds the lock free: on a core that they share it would have to sleep again.
  changed_.notify_one();
}

void WorkerSession::send_posted() {
  std::unique_lock lock(mutex_);
  bool sent = true;
  while (sent && pressing_ && !sending_ && !finishing_ && !takes_time(queue_.front())) {
    std::vector<feed::ServerMessage> messages = take_some();
    sending_ = true;
    lock.unlock();
    size_t count = 0;
    try {
      count = link_->send_together_within(frames_of(messages), Duration{0});
    } catch (const std::exception&) {
      // The sender meets the same, and tells of it.
    }
    lock.lock();
    sending_ = false;
    sent = count == messages.size();
    while (messages.size() > count) {
      queue_.push_front(std::move(messages.back()));
      messages.pop_back();
      pressing_ = true;
    }
  }
  const bool more = pressing_;
  lock.unlock();
  if (more) changed_.notify_one();
}

void WorkerSession::finish(const feed::Farewell& farewell) {
  const std::scoped_lock lock(mutex_);
  if (finishing_) return;
  queue_.clear();
  queue_.emplace_back(farewell);
  finishing_ = pressing_ = true;
  changed_.notify_one();
}

void WorkerSession::send_thread(const std::stop_token& stop) {
  name_thread(local_ ? "local-send" : "link-send");
  const std::stop_callback end(stop, [this] {
    const std::scoped_lock lock(mutex_);
    changed_.notify_one();
  });
  const auto has_to = [&] { return stop.stop_requested() || (pressing_ && !sending_); };
  try {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, has_to);
      if (stop.stop_requested()) return;
      const std::vector<feed::ServerMessage> messages = take_some();
      const bool last = finishing_ && queue_.empty();
      sending_ = true;
      lock.unlock();
      link_->send_together(frames_of(messages));
      if (last) {
        static_cast<void>(link_->flush(std::chrono::seconds(2)));
        return link_->close("the work is over");
      }
      lock.lock();
      sending_ = false;
    }
  } catch (const transport::LinkClosed&) {
    // The receiver sees the same end and reports it.
  } catch (const Cancelled&) {
    // Likewise.
  } catch (const std::exception& error) {
    // A frame that is too large, say: nothing behind it would be sent either.
    log::warning("worker {} cannot be sent what it needs: {}", name_, error.what());
    link_->close(error.what());
  }
}

std::vector<transport::Frame> WorkerSession::frames_of(
    const std::vector<feed::ServerMessage>& messages) const {
  std::vector<transport::Frame> frames;
  for (const auto& message : messages) frames.push_back(worker::to_frame(message, feed_.context()));
  return frames;
}

std::vector<feed::ServerMessage> WorkerSession::take_some() {
  std::vector<feed::ServerMessage> some;
  do {
    some.push_back(std::move(queue_.front()));
    queue_.pop_front();
  } while (!takes_time(some.back()) && !queue_.empty() && !takes_time(queue_.front()));
  pressing_ = !queue_.empty();
  return some;
}

void WorkerSession::refuse(const std::string& reason, bool again) {
  log::warning("worker {} may not join: {}", name_, reason);
  link_->send(worker::to_frame(feed::ServerMessage{feed::Farewell{again, reason, !again}},
                               feed_.context()));
  static_cast<void>(link_->flush(std::chrono::seconds(2)));
  link_->close(reason);
}

std::optional<WorkerSession::Newcomer> WorkerSession::introduce() {
  // It compiles and runs a stem, on a part of a core perhaps, and reads the probe.
  constexpr auto kPatience = std::chrono::minutes(5);
  const JoinTerms& terms = feed_.terms();
  link_->send(worker::to_frame(terms.setup));
  const auto frame = link_->receive(kPatience);
  if (!frame) throw IoError("no answer to the introduction within 5 min");
  const worker::Hello hello = worker::read_hello(*frame);
  name_ = readable(hello.name) + " (" + link_->peer() + ")";
  if (hello.version != OUTRIGGER_VERSION) {
    refuse("its version is " + hello.version + ", the server's is " OUTRIGGER_VERSION, false);
    return std::nullopt;
  }
  if (!hello.problem.empty()) {
    refuse("it cannot read the data: " + hello.problem, true);
    return std::nullopt;
  }
  if (hello.probe != terms.probe) {
    refuse("it sees other data than the server: the bytes of " +
               std::to_string(terms.setup.probe.size()) + " samples differ, among them " +
               terms.setup.probe.front().path,
           false);
    return std::nullopt;
  }
  const bool stems = !terms.numerics.empty() && !hello.numerics.empty() &&
                     (terms.setup.only_timed || hello.numerics == terms.numerics);
  if (!stems && !terms.numerics.empty()) {
    log::warning(
        "worker {} computes differently from this server (another processor or library); it makes "
        "pixels only",
        name_);
  }
  // The other half is for stems and pixels.
  const bool scores = terms.scoring_memory <= static_cast<double>(hello.memory) / 2;
  feed::WorkerTraits traits{name_, false, stems, scores};
  traits.leases = feed::leases_in_hand(hello.cores, terms.micro_batch);
  if (hello.memory > 0)
    traits.memory =
        feed::memory_beside(static_cast<double>(hello.memory), traits.leases, terms.pixels);
  return Newcomer{
      std::move(traits),
      WorkerBook(hello.cores, stems ? hello.pass_seconds : 0, static_cast<double>(hello.memory),
                 stems ? hello.layers : std::vector<LayerSeconds>())};
}

void WorkerSession::receive_thread() {
  name_thread(local_ ? "local-receive" : "link-receive");
  std::optional<feed::WorkerId> id;
  try {
    const auto newcomer = local_ ? Newcomer{{"local", true, true}, WorkerBook(1, 0)} : introduce();
    if (!newcomer) {
      over_ = true;
      return;
    }
    id = feed_.add_worker(newcomer->traits, *this, newcomer->book);
    if (!local_) log::info("worker {} joined", name_);
    link_->deliver(
        [&](const transport::ReceivedFrame& frame) {
          feed_.receive(*id, worker::read_worker_message(frame, feed_.context()));
          send_posted();
        },
        {});
  } catch (const InvalidInput& error) {
    log::warning("worker {} broke the protocol: {}", name_, error.what());
    link_->close(error.what());
  } catch (const Cancelled&) {
    // Closed by this side.
  } catch (const std::exception& error) {  // memory for a frame, too: it is one worker's
    if (!local_) log::info("worker {} is gone: {}", name_, error.what());
  }
  if (id) feed_.lose_worker(*id);
  over_ = true;
}

}  // namespace outrigger::gpu_server
