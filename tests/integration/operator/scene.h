#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "kube/client/client.h"
#include "kube/object/object.h"

namespace outrigger::integration {

using kube::Json;
using std::chrono::seconds;

/// What was expected and did not come, with what the cluster shows instead.
class CaseFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How a container ends.
struct End {
  int code = 0;
  std::string reason = "Error";
  std::string message = {};
};

extern const kube::Resource kJobs;
extern const kube::Resource kPods;
extern const kube::Resource kNamespaces;
extern const kube::Resource kNodes;
extern const kube::Resource kServices;
extern const kube::Resource kConfigMaps;
extern const kube::Resource kSecrets;
extern const kube::Resource kPolicies;

/// One case: a namespace of its own on a real API server, a job in it, and a test that plays
/// scheduler, kubelets and people. What is waited for has a minute. Not thread-safe.
class Scene {
 public:
  /// Makes the namespace. `client` must outlive this.
  Scene(kube::Client& client, const std::string& ns, const Json& ns_labels = Json::object());

  /// The shortest job that runs on a cluster, with `more` merged into its spec.
  Json sample(const Json& more = Json::object()) const;
  /// Creates it; the job that this scene is about from now on.
  Json create(const Json& job);
  /// create(sample(more)), and waits for all its pods and for the status that tells of them.
  void start(const Json& more = Json::object());
  /// start(), and all pods run and are ready.
  void start_and_run(const Json& more = Json::object());
  /// Merges into the job as a user would; the answer is thrown away, or fails the case.
  void change(const Json& patch);
  void change_spec(const Json& patch) { change({{"spec", patch}}); }
  /// The same where the API server is to refuse it; its text.
  std::string refused_change(const Json& patch);

  Json job();
  Json status() { return job().value("status", Json::object()); }
  /// A number or text of the status by its JSON pointer; null where there is none.
  Json at(const std::string& pointer);
  /// "True/Reason"; empty where there is no such condition.
  std::string condition(const std::string& type);
  std::string message(const std::string& type);
  /// Notes of the job's events with this reason.
  std::vector<std::string> events(const std::string& reason);

  /// All pods, or those of one role, by name; those asked to end are among them.
  std::vector<Json> pods(const std::string& role = "");
  std::vector<std::string> names(const std::string& role = "");
  Json get(const kube::Resource& resource, const std::string& name);
  /// Null where there is none.
  Json find(const kube::Resource& resource, const std::string& name);
  Json pod(const std::string& name) { return get(kPods, name); }

  /// The pod of that server in that attempt; empty where there is none.
  std::string server_of(int attempt, int index = 0);
  /// Waits for it.
  std::string until_server_of(int attempt, seconds patience = seconds(60),
                              int line = __builtin_LINE());

  /// As scheduler and kubelet: on a node, running and ready (or not).
  void run(const std::string& pod, bool ready = true);
  void bind(const std::string& pod, const std::string& node = "node-0");
  /// Every pod that does not run yet and is not to end.
  void run_all();
  void patch_pod_status(const std::string& pod, const Json& status);
  /// The container cannot start.
  void wait_in(const std::string& pod, const std::string& reason, const std::string& message);
  void end(const std::string& pod, const End& how);
  void add_condition(const std::string& pod, const std::string& type, const std::string& reason);
  /// Containers of pods that are to end have ended: the kubelet takes them out of the API.
  void finish_deletions();
  /// As `kubectl delete pod`.
  void remove(const std::string& pod);
  /// Out of the API at once, as `kubectl delete --force`.
  void vanish(const std::string& pod);

  /// Waits; throws CaseFailed with `what` if it never holds.
  void until(const std::string& what, const std::function<bool()>& holds,
             seconds patience = seconds(60), int line = __builtin_LINE());
  /// `holds` from now on for so long.
  void stays(const std::string& what, const std::function<bool()>& holds, seconds time,
             int line = __builtin_LINE());
  void until_condition(const std::string& type, const std::string& status_and_reason,
                       int line = __builtin_LINE());
  void until_pods(const std::vector<std::string>& names, int line = __builtin_LINE());
  void expect(bool holds, const std::string& what, int line = __builtin_LINE());
  template <typename T, typename U>
  void expect_equal(const T& is, const U& should_be, const std::string& what,
                    int line = __builtin_LINE()) {
    expect(Json(is) == Json(should_be),
           what + ": is " + Json(is).dump() + ", should be " + Json(should_be).dump(), line);
  }

  kube::Client& client() { return client_; }
  const std::string& ns() const { return ns_; }
  const std::string& name() const { return name_; }

 private:
  [[noreturn]] void fail(const std::string& what, int line);
  std::string picture();

  kube::Client& client_;
  const std::string ns_;
  std::string name_ = "faces";
};

/// The same time everywhere: RFC 3339, whole seconds.
std::string now_text();
/// The pod's only container status in this state.
Json container_status(const Json& pod, const Json& state, bool ready);
/// Makes the namespace and waits until pods can be made in it.
void make_namespace(kube::Client& client, const std::string& ns, const Json& labels);

}  // namespace outrigger::integration
