#pragma once

#include <optional>
#include <string>

#include "tests/integration/operator/operator_process.h"
#include "tests/integration/operator/scene.h"

namespace outrigger::integration {

extern const kube::Resource kWorkloads;
extern const kube::Resource kClusterQueues;
extern const kube::Resource kLocalQueues;

/// The real controller of Kueue with its webhooks for Workloads and pods, on a control plane
/// without nodes. Pods of TrainingJobs that bear a queue's label it leaves alone. Ends with this.
class Kueue {
 public:
  /// Why it cannot be started here; empty: it can.
  static std::string missing();
  /// Installs its kinds, starts it, and returns once it looks at Workloads. Throws IoError.
  explicit Kueue(const ControlPlane& cluster);

  std::string log() const;

 private:
  void install(const ControlPlane& cluster) const;
  void write_files() const;
  Json hook(const std::string& path, const Json& rule) const;
  void guard(kube::Client& client) const;

  const std::filesystem::path folder_;
  const int webhook_port_;
  const int health_port_;
  std::optional<ChildProcess> process_;
};

/// The label of a node's rack.
inline constexpr const char* kRack = "example.org/rack";
/// Gives nodes eight CPUs, the label pool=<name> and a rack each, and makes a flavor of that
/// name for topology-aware scheduling.
void make_racks(kube::Client& client, const std::string& name,
                const std::vector<std::string>& nodes);
/// A ClusterQueue of so many CPUs, whose flavor names nodes with the label pool=<name>. A
/// flavor that is there already is used as it is.
void make_cluster_queue(kube::Client& client, const std::string& name, int cpus);
/// Makes a ClusterQueue ask a check of its name, of which only check() says what it found.
void make_check(kube::Client& client, const std::string& name);
/// Answers for the check of that name about the Workload of the scene's job: Ready or Rejected.
void check(Scene& scene, const std::string& name, const std::string& state,
           const std::string& message);
void set_quota(kube::Client& client, const std::string& name, int cpus);
/// A queue of a namespace.
void make_queue(kube::Client& client, const std::string& ns, const std::string& cluster_queue,
                const std::string& name = "team-a");
/// A spec in which every pod asks for one CPU, in the queue "team-a".
Json of_one_cpu_each(int workers, const Json& more = Json::object());
/// "True/Reason" of the Workload of the scene's job; empty where there is none.
std::string workload_condition(Scene& scene, const std::string& type);

}  // namespace outrigger::integration
