#include "gpu-server/links/worker_session.h"

#include <exception>
#include <utility>

#include "common/log.h"
#include "common/thread_name.h"
#include "gpu-server/report/report_json.h"

namespace outrigger::gpu_server {

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
  {
    const std::scoped_lock lock(mutex_);
    if (finishing_) return;
    queue_.push_back(std::move(message));
  }
  // Whoever wakes finds the lock free: on a core that they share it would have to sleep again.
  changed_.notify_one();
}

void WorkerSession::finish(const feed::Farewell& farewell) {
  const std::scoped_lock lock(mutex_);
  if (finishing_) return;
  queue_.clear();
  queue_.emplace_back(farewell);
  finishing_ = true;
  changed_.notify_one();
}

void WorkerSession::send_thread(const std::stop_token& stop) {
  name_thread(local_ ? "local-send" : "link-send");
  try {
    while (true) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      const feed::ServerMessage message = std::move(queue_.front());
      queue_.pop_front();
      const bool last = finishing_ && queue_.empty();
      lock.unlock();
      link_->send(worker::to_frame(message, feed_.context()));
      if (!last) continue;
      static_cast<void>(link_->flush(std::chrono::seconds(2)));
      link_->close("the work is over");
      return;
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
  if (hello.memory > 0) traits.memory = static_cast<double>(hello.memory);
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
    while (true) {
      const auto frame = link_->receive(std::chrono::seconds(1));
      if (frame) feed_.receive(*id, worker::read_worker_message(*frame, feed_.context()));
    }
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
