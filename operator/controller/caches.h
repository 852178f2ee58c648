#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "kube/cache/informer.h"
#include "operator/observed.h"
#include "operator/plan.h"
#include "operator/read_job.h"

namespace outrigger::controller {

/// A pod of ours and the job that it is for.
struct PodRecord {
  PodState pod;
  SharedText job;  // name
  bool ours = false;
};

/// Another child.
struct ChildRecord {
  SharedText job;      // name
  SharedText job_uid;  // of the owner
  int number = 0;      // of what it was made for: an attempt; a NetworkPolicy, ranks of a pod
};

/// A job's place in a queue.
struct WorkloadRecord {
  Workload workload;
  std::string job;      // name
  std::string job_uid;  // of the owner
};

/// A child but for pods that is gone.
struct GoneChild {
  std::string child;  // "Service faces-server"
  std::string uid;
  std::string job_uid;  // of the owner
};

/// How a child is called in memory and messages: "Pod faces-server-0-0".
std::string child_name(ObjectKind kind, const std::string& name);

PodRecord keep_pod(const Json& object);
Pod pod_of(const kube::Cached<PodRecord>& cached);
ChildRecord keep_child(const Json& object);
WorkloadRecord keep_workload(const Json& object);

/// The job of that key and version, if this process wrote that version; else null.
using OwnWrite = std::function<kube::CachedPtr<JobRecord>(const std::string& job_key,
                                                          const std::string& version)>;

/// Follows jobs and what the operator made of them: what is not ours never enters its memory, and
/// of what is ours only what policies ask for. Thread-safe.
class Caches {
 public:
  /// Of these namespaces; of all where there are none. What is an `own_write` is not read again.
  Caches(kube::Client& client, const std::vector<std::string>& namespaces,
         const OwnWrite& own_write);
  ~Caches();
  Caches(const Caches&) = delete;
  Caches& operator=(const Caches&) = delete;

  /// Called with "namespace/name" of a job that changed. Before start() only. With `only_status`
  /// nothing else of the job did, or nothing at all that policies ask for; the version is the
  /// present one, empty where the job is gone.
  using JobNotice =
      std::function<void(const std::string& job_key, bool only_status, const std::string& version)>;
  void on_change(const JobNotice& notice);
  /// Whenever something that belongs to a job changed; of a new Service or the like
  /// on_new_child() tells. Pods that only come along are not urgent: nothing is to be done for
  /// them.
  using ChildNotice = std::function<void(const std::string& job_key, bool urgent)>;
  void on_child_change(const ChildNotice& notice);
  /// Called with the job and the UID of a pod that is gone, before on_child_change()'s notice where
  /// it was added before. Before start() only.
  using GoneNotice = std::function<void(const std::string& job_key, const std::string& uid)>;
  void on_pod_gone(const GoneNotice& notice);
  /// The same of another child.
  using GoneChildNotice = std::function<void(const std::string& job_key, const GoneChild& gone)>;
  void on_child_gone(const GoneChildNotice& notice);
  /// Called with the job, a child by its child_name() and its number when a cache first shows it.
  /// The operator made it as a rule, and knows; but more may have happened to it since.
  using NewChildNotice =
      std::function<void(const std::string& job_key, const std::string& child, int number)>;
  void on_new_child(const NewChildNotice& notice);

  void start();
  /// Whether all of a namespace is in the caches, but for Workloads: a cluster need not know them.
  bool has_synced(const std::string& ns) const;
  /// Namespaces of which that is not so; "" is all.
  std::vector<std::string> unlisted() const;
  /// False if `stop` was requested before that is so for one namespace at least: without the right
  /// to look into another its jobs wait, and no others. Calls `waiting` at each look that finds
  /// none.
  bool wait_for_sync(const std::stop_token& stop, const std::function<void()>& waiting);
  void stop();

  kube::CachedPtr<JobRecord> job(const kube::ObjectKey& key) const;
  std::vector<kube::CachedPtr<JobRecord>> jobs() const;
  std::vector<kube::CachedPtr<PodRecord>> pods(const std::string& job_key) const;
  std::vector<kube::CachedPtr<ChildRecord>> children(ObjectKind kind,
                                                     const std::string& job_key) const;
  /// Whether Workloads are followed in that namespace.
  bool knows_workloads(const std::string& ns) const;
  /// That of the job with this UID; null if there is none.
  kube::CachedPtr<WorkloadRecord> workload(const std::string& job_key,
                                           const std::string& job_uid) const;

 private:
  struct Scope;  // one namespace, or all
  const Scope* scope_of(const std::string& ns) const;
  static bool is_full(const Scope& scope);

  std::map<std::string, std::unique_ptr<Scope>> scopes_;  // by namespace; "" is all
};

}  // namespace outrigger::controller
