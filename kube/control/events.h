#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "kube/client/client.h"
#include "kube/control/token_bucket.h"
#include "kube/object/timestamp.h"

namespace outrigger::kube {

/// events.k8s.io/v1 Event.
extern const Resource kEvents;

/// What an event is about (corev1.ObjectReference).
struct EventSubject {
  std::string api_version;
  std::string kind;
  ObjectKey key;
  std::string uid;
  std::string resource_version = {};
};

enum class EventType { kNormal, kWarning };

/// What happened. Reason and action are words in CamelCase; the note is for people.
struct Event {
  EventType type = EventType::kNormal;
  std::string reason;  // "Restarting"
  std::string action;  // what was done about it: "CreatePod"
  std::string note;    // cut at 1024 bytes, the API's limit
};

struct EventRecorderOptions {
  std::string controller;  // "outrigger.dev/operator"
  std::string instance;    // this process
  /// What is alike, of one object, within this time of the last one is one event with a count.
  Duration series = std::chrono::minutes(6);
  /// A series is written again at most so often; its second event at once.
  Duration between_updates = std::chrono::seconds(30);
  /// Each object's own: so many at once, then one in five minutes (as client-go's spam filter).
  TokenBucket::Options budget{1.0 / 300, 25};
  /// Waiting to be sent; more are dropped.
  size_t most_pending = 1000;
  /// Series remembered; where there are more, the older half is forgotten.
  size_t most_series = 4096;
  /// At its end what is pending is sent for so long, which the client's own stop must allow; the
  /// rest is dropped and counted.
  Duration drain = std::chrono::seconds(1);
  /// Requested when that is over. The client's token is of it, so that no request lasts longer.
  std::stop_source give_up{std::nostopstate};
  const Timer* timer = &Timer::system();
  Observer* observer = &Observer::none();
};

/// Tells people what happened to an object, as `kubectl describe` and `kubectl get events` show.
/// Thread-safe. Recording never waits for the network: a thread sends; events that nobody could
/// send in time are dropped and counted, since nothing may depend on them.
class EventRecorder {
 public:
  EventRecorder(Client& client, EventRecorderOptions options);
  /// Sends what is pending, as EventRecorderOptions::drain says.
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void record(const EventSubject& subject, const Event& event);
  /// Waits until nothing is pending; for tests and the end of a process. False at `deadline`.
  bool flush(TimePoint deadline);

 private:
  // What events of one series have in common: all but the version of the subject.
  struct Identity {
    EventSubject subject;
    Event event;
  };
  // Thousands of series are remembered: by a digest, since whoever tells of one brings the rest.
  // Of 64 bits: should two ever have the same, one would be counted with the other.
  using Digest = uint64_t;
  struct Series {
    uint64_t mark = 0;  // in the object's name
    Timestamp first_seen{};
    int count = 1;
    Timestamp last_seen{};
    TimePoint last_time{};
    TimePoint last_written{};
    bool created = false;  // known to the server
    bool pending = false;  // in pending_
  };
  static Digest digest_of(const Identity& id);
  static std::string name_of(const Identity& id, const Series& series);
  bool within_budget(const std::string& uid, TimePoint now);
  Series begin_series(bool pending, TimePoint now);
  struct Pending {
    Digest digest{};
    Identity id;
  };
  void repeat(const Identity& id, const Digest& digest, Series& series, TimePoint now);
  void forget_old(TimePoint now);
  void queue(Pending pending, Series& series);
  void run(const std::stop_token& stop);
  void send(const Pending& pending, std::unique_lock<std::mutex>& lock);
  bool deliver(const Identity& id, const Series& series);
  TimePoint queue_due_updates(TimePoint now);
  void drop_pending();

  Client& client_;
  const EventRecorderOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Digest, Series> series_;
  std::deque<Pending> pending_;
  std::map<Digest, Identity> unwritten_;        // series whose count the server does not have yet
  std::map<std::string, TokenBucket> budgets_;  // by UID
  bool sending_ = false;
  uint32_t made_ = 0;
  std::jthread thread_;
};

}  // namespace outrigger::kube
