#include "operator/objects/volumes.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "api/names.h"
#include "kube/json_fields.h"
#include "operator/objects/merge.h"

namespace outrigger::controller {
namespace {

// Prefixed, so that a template's own volumes hardly ever bear such a name.
constexpr const char* kConfigVolume = "outrigger-config";
constexpr const char* kTemporaryVolume = "outrigger-tmp";
constexpr const char* kSharedMemoryVolume = "outrigger-shm";
constexpr const char* kOutputVolume = "outrigger-output";
constexpr const char* kCheckpointVolume = "outrigger-checkpoint";
// Readable by any user: the container may run as anyone.
constexpr int kReadableByAll = 0444;

/// Where the file and the tokens lie, and what they are called there. The same for every pod.
struct ConfigPaths {
  const std::string folder = std::filesystem::path(api::kJobFilePath).parent_path().string();
  const std::string job_file = below(api::kJobFilePath);
  const std::string join_token = below(api::kJoinTokenPath);
  const std::string control_token = below(api::kControlTokenPath);

  std::string below(std::string_view path) const {
    return std::filesystem::path(path).lexically_relative(folder).string();
  }
};

const ConfigPaths& config_paths() {
  static const ConfigPaths paths;
  return paths;
}

// One volume for file and tokens: a mount inside another read-only mount has nowhere to be made.
Json config_volume(const api::TrainingJob& job, const PodOrder& order) {
  const ConfigPaths& paths = config_paths();
  const bool server = order.place.role == api::Role::kServer;
  Json items = Json::array({{{"key", "join-token"}, {"path", paths.join_token}}});
  if (server) items.push_back({{"key", "control-token"}, {"path", paths.control_token}});
  Json sources = Json::array({{{"secret",
                                {{"name", secret_name(job.metadata.name, job.metadata.uid)},
                                 {"items", std::move(items)}}}}});
  if (server) {
    sources.push_back({{"configMap",
                        {{"name", config_map_name(job.metadata.name, order.attempt)},
                         {"items", Json::array({{{"key", std::string(api::kJobFileName)},
                                                 {"path", paths.job_file}}})}}}});
  }
  return {{"name", kConfigVolume},
          {"projected", {{"defaultMode", kReadableByAll}, {"sources", std::move(sources)}}}};
}

/// The mounts of one container. A claim becomes one volume however often it is mounted, since a pod
/// that names a claim twice does not always start.
class Mounts {
 public:
  Mounts(Json& spec, Json& container)
      : volumes_(list_at(spec, "volumes")), mounts_(list_at(container, "volumeMounts")) {}

  /// Whether something of the template or of us is mounted there, or above.
  bool covered(const std::string& path) const {
    for (const Json& mount : mounts_) {
      const std::string at = kube::text_at(mount, "mountPath");
      if (path == at || path.rfind(at + "/", 0) == 0) return true;
    }
    return false;
  }
  void mount(const Json& volume, const std::string& path, bool read_only) {
    for (const Json& mount : mounts_) {
      if (kube::text_at(mount, "mountPath") == path) return;
    }
    add_named(volumes_, volume);
    Json entry{{"name", volume.at("name")}, {"mountPath", path}};
    if (read_only) entry["readOnly"] = true;
    mounts_.push_back(std::move(entry));
  }
  void mount_claim(const std::string& claim, const std::string& path, bool read_only) {
    const auto [at, fresh] =
        claims_.emplace(claim, "outrigger-claim-" + std::to_string(claims_.size()));
    mount({{"name", at->second}, {"persistentVolumeClaim", {{"claimName", claim}}}}, path,
          read_only);
  }
  void mount_empty(const char* name, const std::string& path,
                   const Json& options = Json::object()) {
    mount({{"name", name}, {"emptyDir", options}}, path, false);
  }

 private:
  Json& volumes_;
  Json& mounts_;
  std::map<std::string, std::string> claims_;
};

void mount_results(Mounts& mounts, const api::TrainingJobSpec& spec) {
  if (spec.output.volume_claim_name) {
    mounts.mount_claim(*spec.output.volume_claim_name, spec.output.path, false);
  } else if (!mounts.covered(spec.output.path)) {
    mounts.mount_empty(kOutputVolume, spec.output.path);
  }
  if (!spec.checkpoint.path) return;
  if (spec.checkpoint.volume_claim_name) {
    mounts.mount_claim(*spec.checkpoint.volume_claim_name, *spec.checkpoint.path, false);
  } else if (!mounts.covered(*spec.checkpoint.path)) {
    mounts.mount_empty(kCheckpointVolume, *spec.checkpoint.path);
  }
}

// All but what tells a process its job.
void mount_folders(Mounts& mounts, const api::TrainingJob& job, api::Role role) {
  if (job.spec.data.volume_claim_name) {
    mounts.mount_claim(*job.spec.data.volume_claim_name, std::string(api::kDataMountPath), true);
  }
  if (role == api::Role::kServer) mount_results(mounts, job.spec);
  // NCCL passes through /dev/shm what GPUs of one pod cannot send each other, and PyTorch what its
  // loaders make; runtimes give 64 MiB.
  const bool external = job.spec.server.engine == api::Engine::kExternal;
  const bool shares = role == api::Role::kServer && (external || api::ranks_per_pod(job.spec) > 1);
  if (shares && !mounts.covered("/dev/shm"))
    mounts.mount_empty(kSharedMemoryVolume, "/dev/shm", {{"medium", "Memory"}});
  if (!mounts.covered("/tmp")) mounts.mount_empty(kTemporaryVolume, "/tmp");
}

}  // namespace

void add_volumes(Json& spec, Json& container, const api::TrainingJob& job, const PodOrder& order) {
  Mounts mounts(spec, container);
  mounts.mount(config_volume(job, order), config_paths().folder, true);
  mount_folders(mounts, job, order.place.role);
}

bool outlives_pod(const api::TrainingJob& job, Json spec, Json container, const std::string& path) {
  Mounts mounts(spec, container);
  mount_folders(mounts, job, api::Role::kServer);
  std::string nearest;
  std::string volume;
  for (const Json& mount : container.at("volumeMounts")) {
    const std::string at = kube::text_at(mount, "mountPath");
    if ((path != at && path.rfind(at + "/", 0) != 0) || at.size() < nearest.size()) continue;
    nearest = at;
    volume = kube::text_at(mount, "name");
  }
  const Json* found = find_named(spec.at("volumes"), volume);
  return found != nullptr && !found->contains("emptyDir");
}

}  // namespace outrigger::controller
