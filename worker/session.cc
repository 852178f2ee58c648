#include "worker/session.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/thread_name.h"
#include "worker/fault.h"
#include "worker/read_failures.h"

namespace outrigger::worker {
namespace {

/// What the receiving thread has read and the working thread has not taken yet.
class Inbox {
 public:
  void put(feed::ServerMessage message) {
    change([&] { messages_.push_back(std::move(message)); });
  }
  void fail(std::exception_ptr why) {
    change([&] { failure_ = std::move(why); });
  }
  /// Ends a wait.
  void wake() {
    change([&] { woken_ = true; });
  }
  /// All that has come; waits for something, or to be woken, where `wait`. Throws what ended the
  /// receiving, after the messages.
  std::deque<feed::ServerMessage> take(bool wait, const std::stop_token& stop) {
    if (wait) wait_for_some(stop);
    const std::scoped_lock lock(mutex_);
    woken_ = false;
    if (messages_.empty() && failure_ != nullptr) std::rethrow_exception(failure_);
    return std::exchange(messages_, {});
  }

 private:
  /// Whoever wakes finds the lock free.
  template <typename Change>
  void change(const Change& make) {
    {
      const std::scoped_lock lock(mutex_);
      make();
    }
    changed_.notify_one();
  }
  void wait_for_some(const std::stop_token& stop) {
    const std::stop_callback end(stop, [this] { change([] {}); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return !messages_.empty() || failure_ != nullptr || woken_ || stop.stop_requested();
    });
  }

  std::mutex mutex_;
  std::condition_variable changed_;  // one that takes a stop token wakes its thread twice
  std::deque<feed::ServerMessage> messages_;
  std::exception_ptr failure_;
  bool woken_ = false;
};

/// For its life a wait for messages ends when a lease is decoded, and the counters show how far
/// others are with that. It ends when none of them decodes: a read that hangs must be seen.
class Waking {
 public:
  Waking(Agent& agent, Inbox& inbox, SessionCounters& counters) : agent_(agent) {
    agent_.watch({[&inbox] { inbox.wake(); }, &counters.at_sample});
  }
  ~Waking() {
    agent_.settle();
    agent_.watch({});
  }
  Waking(const Waking&) = delete;
  Waking& operator=(const Waking&) = delete;

 private:
  Agent& agent_;
};

void receive_all(transport::Link& link, Inbox& inbox, const WireContext& context,
                 const std::stop_token& over, const char* thread) {
  name_thread(thread);
  try {
    link.deliver(
        [&](const transport::ReceivedFrame& frame) {
          inbox.put(read_server_message(frame, context));
        },
        over);
  } catch (...) {
    inbox.fail(std::current_exception());
  }
}

/// What a fault point is called at which this message is received or was sent.
const char* point_of(const feed::ServerMessage& message) {
  constexpr const char* kPoints[] = {"got-lease",  "got-weights",   "got-gradient",
                                     "got-cancel", "got-committed", "got-farewell"};
  static_assert(std::size(kPoints) == std::variant_size_v<feed::ServerMessage>);
  if (const auto* lease = std::get_if<feed::Lease>(&message)) {
    if (lease->kind == feed::WorkKind::kBackward) return "got-backward-lease";
    if (lease->kind == feed::WorkKind::kEvaluate) return "got-evaluation-lease";
    if (lease->kind == feed::WorkKind::kScore) return "got-score-lease";
  }
  return kPoints[message.index()];
}
const char* point_of(const feed::WorkerMessage& message) {
  constexpr const char* kPoints[] = {"sent-pull",   "sent-micro-batch", "sent-stem-gradient",
                                     "sent-broken", "sent-read-failed", "sent-leaving",
                                     "sent-scores"};
  static_assert(std::size(kPoints) == std::variant_size_v<feed::WorkerMessage>);
  return kPoints[message.index()];
}

/// The working thread's side of a session.
class Session {
 public:
  /// References must outlive this.
  Session(transport::Link& link, Agent& agent, const WireContext& context,
          SessionCounters& counters)
      : link_(link), agent_(agent), context_(context), counters_(counters) {}

  SessionResult work(Inbox& inbox, const std::stop_token& stop);

 private:
  void count(const feed::WorkerMessage& message);
  void send(const std::vector<feed::WorkerMessage>& messages);
  void tell_link_rate();
  SessionResult leave();

  transport::Link& link_;
  Agent& agent_;
  const WireContext& context_;
  SessionCounters& counters_;
  FaultPoint faults_;
  ReadFailures read_failures_;
};

void Session::count(const feed::WorkerMessage& message) {
  if (std::holds_alternative<feed::MicroBatch>(message)) counters_.micro_batches.add();
  if (std::holds_alternative<feed::StemGradient>(message)) counters_.stem_gradients.add();
  if (const auto* broken = std::get_if<feed::Broken>(&message))
    counters_.broken_samples.add(static_cast<double>(broken->items.size()));
  if (const auto* failed = std::get_if<feed::ReadFailed>(&message)) {
    counters_.failed_reads.add();
    if (const auto line = read_failures_.note(failed->reason, system_now()))
      log::warning("{}", *line);
  }
  if (std::holds_alternative<feed::Scores>(message)) counters_.scored_batches.add();
}

void Session::send(const std::vector<feed::WorkerMessage>& messages) {
  std::vector<transport::Frame> frames;
  for (const auto& message : messages) {
    count(message);
    frames.push_back(to_frame(message, context_));
    const char* point = point_of(message);
    const bool fault = faults_.due(point);
    if (fault || &message == &messages.back()) link_.send_together(std::exchange(frames, {}));
    if (fault) static_cast<void>(link_.flush(std::chrono::seconds(1)));
    faults_.reached(point);
  }
}

/// Lets results tell how fast the link is, once that is known.
void Session::tell_link_rate() {
  const double rate = link_.stats().rate();
  if (rate > 0) agent_.set_link_rate(rate);
}

SessionResult Session::leave() {
  agent_.stop_pulling();
  auto last = agent_.take_outbox();
  last.emplace_back(feed::Leaving{});
  send(last);
  static_cast<void>(link_.flush(std::chrono::seconds(1)));
  link_.close("the worker was asked to stop");
  return {SessionEnd::kStopped, "asked to stop"};
}

SessionResult Session::work(Inbox& inbox, const std::stop_token& stop) {
  bool idle = false;
  while (!stop.stop_requested()) {
    send(agent_.take_outbox());
    auto messages = inbox.take(idle, stop);
    const Turn turn(counters_.turns);
    for (auto& message : messages) {
      faults_.reached(point_of(message));
      agent_.receive(std::move(message));
    }
    if (agent_.farewell()) return result_of(*agent_.farewell());
    const auto begin = std::chrono::steady_clock::now();
    idle = !agent_.work();
    if (!idle) {
      faults_.reached("worked");
      tell_link_rate();
      counters_.busy_seconds.add(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    counters_.busy_seconds.add(agent_.take_busy());
    counters_.unfinished.set(static_cast<double>(agent_.unfinished()));
  }
  return leave();
}

/// What the server said before its link was over: whoever sends sees the end first.
std::optional<feed::Farewell> last_words(Inbox& inbox, const std::stop_token& stop) {
  try {
    while (!stop.stop_requested()) {
      for (const auto& message : inbox.take(true, stop)) {
        if (const auto* farewell = std::get_if<feed::Farewell>(&message)) return *farewell;
      }
    }
  } catch (const Error&) {
    // All has been read.
  }
  return std::nullopt;
}

}  // namespace

SessionResult result_of(const feed::Farewell& farewell) {
  if (farewell.refused) return {SessionEnd::kRefused, farewell.reason};
  return {farewell.again ? SessionEnd::kAgain : SessionEnd::kFinished, farewell.reason};
}

SessionResult run_session(transport::Link& link, Agent& agent, const WireContext& context,
                          SessionCounters& counters, const std::stop_token& stop,
                          const char* receiver_thread) {
  Inbox inbox;
  std::jthread receiver([&](const std::stop_token& over) {
    receive_all(link, inbox, context, over, receiver_thread);
  });
  const Waking waking(agent, inbox, counters);
  SessionResult result;
  try {
    result = Session(link, agent, context, counters).work(inbox, stop);
  } catch (const transport::LinkClosed& closed) {
    const auto farewell = last_words(inbox, stop);
    result = farewell ? result_of(*farewell) : SessionResult{SessionEnd::kLinkLost, closed.what()};
  } catch (const Cancelled& cancelled) {
    result = {SessionEnd::kLinkLost, cancelled.what()};
  }
  result.had_work = agent.had_work();
  return result;
}

}  // namespace outrigger::worker
