#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "kube/client/client.h"
#include "kube/control/lease.h"
#include "kube/object/object.h"

namespace outrigger::kube {

struct LeaderElectionOptions {
  ObjectKey lease;  // its namespace and name
  /// Who we are, different for every process: the pod's name and a random part.
  std::string identity;
  /// Others wait so long after the last renewal that they saw before they take over.
  std::chrono::seconds lease_duration{15};
  /// A leader that could not renew for so long gives up; shorter, so that there are never two.
  std::chrono::seconds renew_deadline{10};
  std::chrono::seconds retry_period{2};
  /// On stop the lease is given back, so that a successor need not wait it out.
  bool release_on_stop = true;
  /// Asked whenever the Lease is made: it goes when they are gone. Of its own namespace, or
  /// Kubernetes takes them for gone. Empty: it stays.
  std::function<std::vector<OwnerReference>()> owners = {};
  std::string user_agent = "outrigger";
  const Timer* timer = &Timer::system();
  Observer* observer = &Observer::none();
};

/// Makes one of several processes the leader, by a Lease (coordination.k8s.io/v1; the scheme of
/// client-go's leaderelection). Time is this machine's monotonic clock between changes that it saw
/// itself; what others wrote as times is never compared with it, so clocks may differ as they like.
///
/// There may be a moment in which a process still leads that the API server no longer reaches: it
/// ends renew_deadline after its last renewal began, and others wait for lease_duration.
class LeaderElection {
 public:
  /// Uses connections of its own, whose time-out is half of the deadline.
  LeaderElection(const Config& config, LeaderElectionOptions options);

  enum class Outcome { kStopped, kLost };
  struct Callbacks {
    /// Called once, on a thread of its own, when this process leads; returns soon after its token
    /// is stopped.
    std::function<void(const std::stop_token&)> lead;
    /// Called on the caller's thread when the lease is lost, once lead()'s token is stopped and
    /// before it has ended: where that may take longer than others wait, see to it here that the
    /// process ends. May be empty.
    std::function<void()> lost = {};
    /// Another leads; may be empty.
    std::function<void(const std::string& identity)> observed = {};
  };
  /// Waits to become leader, leads, renews. Returns when `stop` is requested or the lease is lost,
  /// after lead() has returned; gives the lease back after that.
  Outcome run(const std::stop_token& stop, const Callbacks& callbacks);

 private:
  enum class Step { kHeld, kNotHeld, kFailed };
  Step try_to_hold(Client& client, const Callbacks& callbacks);
  Step write(Client& client, Json lease, bool exists, TimePoint now);
  void observe(const Json& lease, const Callbacks& callbacks);
  bool expired(TimePoint now) const;
  /// What runs while we lead: who renews, with requests that can be broken off, and the work.
  struct Reign {
    Client& renewer;
    std::stop_source& renewals;
    std::jthread& leading;
  };
  Outcome keep(const std::stop_token& stop, const Callbacks& callbacks, const Reign& reign);
  void renew(const std::stop_token& ended, const Callbacks& callbacks, const Reign& reign);
  bool stays_ours(const std::stop_token& stop);
  void release();

  const LeaderElectionOptions options_;
  const Config config_;
  Client client_;
  LeaseRecord seen_;
  std::string seen_version_;
  TimePoint changed_{};  // when what is seen last changed, on our clock

  std::mutex mutex_;
  std::condition_variable_any renewal_;
  TimePoint renewed_{};      // when our last successful renewal began
  bool taken_away_ = false;  // another holds it although we lead
};

}  // namespace outrigger::kube
