#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "kube/cache/informer.h"
#include "kube/client/client.h"

namespace outrigger::bench {

using kube::Json;
using Steady = std::chrono::steady_clock;

/// Pods of one job: a server and four workers.
inline constexpr int kPodsOfAJob = 5;

/// What is posted for one job.
struct Posting {
  kube::Resource resource;
  Json object;
};

/// A TrainingJob, the objects that the operator makes of it (owned by nobody, and not labelled as
/// the operator's), and a Job of the built-in controller with as many pods. `number` names it.
Posting training_job(const std::string& ns, int number);
std::vector<Posting> objects_of_a_job(const std::string& ns, int number);
Posting builtin_job(const std::string& ns, int number);
/// The smallest pod there is, on no node.
Posting other_pod(const std::string& ns, int number);

/// Calls post(0) … post(count − 1) from several threads, each number once.
void post_all(int count, const std::function<void(int)>& post);
/// Throws where the API server does not take it.
void post(kube::Client& client, const Posting& posting);

/// For how long anything here is waited for.
inline constexpr std::chrono::seconds kPatience{600};
/// Looks once a `period`: a look at the operator's metrics is work for it. Throws IoError once
/// kPatience is over.
void wait_until(const std::string& what, std::chrono::milliseconds period,
                const std::function<bool()>& holds);

/// What lies in a namespace for each of its jobs by now, "5.0 pods, 1.0 services, ..."; of no kind
/// that every namespace has by itself.
std::string made_of_a_job(kube::Client& client, const std::string& ns, int jobs);

/// Follows the pods of a namespace. Thread-safe.
class PodCount {
 public:
  /// Returns once it follows.
  PodCount(kube::Client& client, const std::string& ns);

  /// Waits until there are so many; returns when the last of them came. Throws IoError once
  /// kPatience is over.
  Steady::time_point until(int pods);
  /// When the last pod of that job came; the job needs to have all its pods.
  Steady::time_point complete_at(const std::string& job);

 private:
  struct OfAJob {
    int pods = 0;
    Steady::time_point last;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  int pods_ = 0;
  Steady::time_point last_;
  std::map<std::string, OfAJob> jobs_;
  kube::Informer<std::string> informer_;
};

/// The sum of a metric's series whose line contains `part`; 0 where there is none.
double metric(const std::string& page, const std::string& name, const std::string& part = "");

}  // namespace outrigger::bench
