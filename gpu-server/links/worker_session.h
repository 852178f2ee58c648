#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "feed/coordinator.h"
#include "gpu-server/links/server_feed.h"
#include "transport/link.h"

namespace outrigger::gpu_server {

/// The server's end of one worker: a thread that introduces it and sees its end, the link's, which
/// takes its results and answers, and one that sends all else, so that neither a slow worker nor a
/// large tensor holds up the others.
class WorkerSession {
 public:
  /// `local`: the worker in this process, which is not introduced. The feed must outlive this.
  WorkerSession(ServerFeed& feed, std::unique_ptr<transport::Link> link, bool local);
  /// Closes the link and waits for the threads. Not with the feed's lock held.
  ~WorkerSession();

  /// Queues a message, which goes with the next wake(), or when the thread that receives has taken
  /// in what it received. Never blocks.
  void post(feed::ServerMessage message);
  /// Has what is queued sent, unless nobody waits for any of it. Never blocks.
  void wake();
  /// Sends what is queued and a farewell, then closes. Never blocks.
  void finish(const feed::Farewell& farewell);
  bool over() const { return over_; }
  bool local() const { return local_; }
  const std::string& name() const { return name_; }
  transport::LinkStats stats() const { return link_->stats(); }
  void measure_link_anew() { link_->measure_anew(); }

 private:
  void receive_thread();
  void send_thread(const std::stop_token& stop);
  /// What is queued and takes no time, as far as nobody else sends and the link has room; wakes the
  /// sender for the rest.
  void send_posted();
  /// Whether a message that is queued now is to be sent though nothing follows it. With the lock
  /// held.
  bool is_waited_for(const feed::ServerMessage& message);
  /// Of what is queued: one message that takes time to send, or those before the next such one.
  /// With the lock held.
  std::vector<feed::ServerMessage> take_some();
  std::vector<transport::Frame> frames_of(const std::vector<feed::ServerMessage>& messages) const;
  /// Introduces the job and checks the answer; nothing where the worker may not join.
  struct Newcomer {
    feed::WorkerTraits traits;
    WorkerBook book;
  };
  std::optional<Newcomer> introduce();
  /// `again`: what is wrong may mend itself.
  void refuse(const std::string& reason, bool again);

  ServerFeed& feed_;
  const std::unique_ptr<transport::Link> link_;
  const bool local_;
  std::string name_;  // set before the worker joins
  std::mutex mutex_;
  std::condition_variable changed_;  // one that takes a stop token wakes its thread twice
  std::deque<feed::ServerMessage> queue_;
  std::optional<uint64_t> newest_stem_;  // that the worker has and may still keep
  bool pressing_ = false;                // somebody waits for what is queued
  bool sending_ = false;                 // somebody has taken something from the queue
  bool finishing_ = false;
  std::atomic<bool> over_{false};
  std::jthread sender_;
  std::jthread receiver_;
};

}  // namespace outrigger::gpu_server
