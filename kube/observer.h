#pragma once

#include <string>

#include "common/clock.h"

namespace outrigger::kube {

/// What this folder has to tell to whoever keeps metrics; each call names the metric that Go's
/// controllers made standard. Called from any thread, often under a lock: return quickly and call
/// nothing of kube. What is not overridden is not looked at.
class Observer {
 public:
  virtual ~Observer() = default;

  struct Request {
    std::string verb;  // GET, LIST, WATCH, POST, …
    std::string host;
    std::string code;   // "200"; "<error>" where no answer came
    Duration duration;  // of a watch: until its answer began
  };
  /// rest_client_requests_total, rest_client_request_duration_seconds
  virtual void request_finished(const Request&) {}
  /// rest_client_request_retries_total
  virtual void request_retried(const Request&) {}

  /// workqueue_adds_total
  virtual void queue_added(const std::string& /*queue*/) {}
  /// workqueue_depth
  virtual void queue_depth(const std::string& /*queue*/, size_t /*keys*/) {}
  /// workqueue_queue_duration_seconds
  virtual void queue_waited(const std::string& /*queue*/, Duration) {}
  /// workqueue_work_duration_seconds
  virtual void queue_worked(const std::string& /*queue*/, Duration) {}
  /// workqueue_retries_total
  virtual void queue_retried(const std::string& /*queue*/) {}
  /// How long the keys that are worked on now have been.
  struct Work {
    Duration unfinished{};  // of all together
    Duration longest{};     // of the one that takes longest
  };
  /// workqueue_unfinished_work_seconds, workqueue_longest_running_processor_seconds
  virtual void queue_works(const std::string& /*queue*/, const Work&) {}

  /// reflector_lists_total, reflector_items_per_list, reflector_list_duration_seconds
  virtual void listed(const std::string& /*resource*/, size_t /*objects*/, Duration) {}
  /// reflector_watches_total
  virtual void watched(const std::string& /*resource*/) {}

  /// leader_election_master_status
  virtual void leader_changed(const std::string& /*lease*/, bool /*leading*/) {}

  /// Events that were not sent: the object's budget or the buffer was used up.
  virtual void event_dropped() {}

  /// Looks at nothing.
  static Observer& none();
};

}  // namespace outrigger::kube
