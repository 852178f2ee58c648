#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "operator/controller/caches.h"
#include "operator/observed.h"

namespace outrigger::controller {

struct PodName {
  std::string name;
  std::string uid;
};

/// What the API server answered to our own writes of one job and the caches do not show yet, what
/// it refused, and what the job's server said. May all be lost: it is found out again. Thread-safe.
class JobMemory {
 public:
  explicit JobMemory(std::string uid) : uid_(std::move(uid)) {}
  const std::string& uid() const { return uid_; }

  /// The job as we wrote it last, until the cache shows it: who asks and then looks into the cache
  /// has the newest.
  kube::CachedPtr<JobRecord> own_write() const;
  void wrote_job(kube::CachedPtr<JobRecord> job, TimePoint now);
  /// The job as it was read after our write was refused as one of an older version: what we wrote
  /// before may never come, where the API server was put back to a backup. Null: there is none.
  void found_job(kube::CachedPtr<JobRecord> job);
  /// That, if it is of this version.
  kube::CachedPtr<JobRecord> own_write(const std::string& version) const;
  /// The cache shows that version. True if it is our own last write, which nobody has to remember
  /// any more, nor any older one.
  bool cache_shows(const std::string& version);

  /// For how long numbers may go unwritten yet: they are written once a second at most.
  Duration may_wait(TimePoint now) const;

  /// Those of our own writes that the cache has not shown for a minute, which is longer than any
  /// watch lags: they may be there all the same, so somebody has to look (found_pod, pod_is_gone).
  std::vector<PodName> unseen_pods(const std::vector<kube::CachedPtr<PodRecord>>& cached,
                                   TimePoint now) const;
  /// Pods of the cache with our own newer writes over them.
  std::vector<Pod> overlay(const std::vector<kube::CachedPtr<PodRecord>>& cached, TimePoint now);
  void wrote_pod(const Json& pod, TimePoint now);
  /// Read just now, although the caches do not show it: somebody took a label off, say.
  void found_pod(const Json& pod, TimePoint now);
  /// The answer to our own write may come after this.
  void pod_is_gone(const std::string& uid, TimePoint now);
  /// Whether there is something that the caches are to show yet.
  bool awaits_caches() const;

  /// A child by "Service faces-server", with its number as in ChildRecord. Of one that was made the
  /// cache shows nothing older; of one that was changed it may.
  enum class Write { kMade, kChanged };
  void wrote_child(const std::string& child, int number, Write write, TimePoint now);
  /// The number of a child, which the cache shows with `cached`. What we wrote and the cache does
  /// not show is believed for a minute.
  std::optional<int> child(const std::string& child, std::optional<int> cached, TimePoint now);
  /// Whether that is what we wrote last: then it is no news that the cache shows it.
  bool is_own_write(const std::string& child, int number) const;
  /// The same of a Secret, which nobody reads: how long ago it was made or found; nothing: not in
  /// that attempt.
  void wrote_secret(int attempt, TimePoint now);
  std::optional<Duration> secret_age(int attempt, TimePoint now) const;
  /// Whether it was, in any attempt.
  bool had_secret() const;
  /// Its name is free: whoever was refused it may ask at once. One of a former job of this name is
  /// not ours.
  void child_is_gone(const GoneChild& gone);

  /// We deleted that child: what the cache still shows of it is not there, and no admission.
  void dropped(const std::string& child, const std::string& uid);
  /// To be asked before the caches are: they show such a child until they tell that it is gone.
  std::set<std::string> dropped() const;
  /// ResourceFlavors as they were read for the present admission.
  std::optional<Placement> flavor(const std::string& name) const;
  void read_flavor(const std::string& name, const Placement& flavor);
  void forget_flavors();

  /// Remembers what was refused, or that it no longer is.
  void refused(const Refusal& refusal);
  void created(const std::string& object);
  /// Those that are not too old to mean anything.
  std::vector<Refusal> refusals(api::Time now);

  void reported(const ServerReport& report, api::Time at);
  /// What that server said last, by its pod's UID; what another said is forgotten.
  std::optional<ServerReport> report_of(const std::string& server);
  /// True once for a generation: that the server refuses that edit is to be told.
  bool first_refusal_of(int64_t generation);
  /// What reports said about workers over the last `window` and a little more; from now on it is
  /// kept for so long. Zero: nobody asks.
  std::vector<WorkerDemand> demand(std::chrono::seconds window);

 private:
  struct Written {
    std::string version;
    Pod pod;
    TimePoint at;
  };

  struct WrittenChild {
    int number = 0;
    Write write = Write::kMade;
    TimePoint at;
  };

  struct WrittenSecret {
    int attempt = 0;
    TimePoint at;
  };

  const std::string uid_;
  mutable std::mutex mutex_;
  kube::CachedPtr<JobRecord> job_;
  std::optional<TimePoint> wrote_;         // when that was
  std::map<std::string, Written> pods_;    // by UID
  std::map<std::string, TimePoint> gone_;  // UIDs of pods that are gone, and since when
  std::map<std::string, WrittenChild> children_;
  std::optional<WrittenSecret> secret_;  // and the attempt that it was made or found for
  std::set<std::string> dropped_;        // UIDs, until the cache shows it
  std::map<std::string, Placement> flavors_;
  std::vector<Refusal> refusals_;
  std::optional<ServerReport> report_;
  std::string reporter_;                 // UID of the pod that it is of
  std::optional<int64_t> refusal_told_;  // the generation
  std::vector<WorkerDemand> demand_;
  std::chrono::seconds demand_window_{0};
};

/// One for each living job.
class Memory {
 public:
  /// That of the job with this UID; a former one of the same name is forgotten.
  std::shared_ptr<JobMemory> of(const std::string& job_key, const std::string& uid);
  /// Null if there is none.
  std::shared_ptr<JobMemory> find(const std::string& job_key) const;
  void forget(const std::string& job_key);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<JobMemory>> jobs_;
};

}  // namespace outrigger::controller
