#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace outrigger::api {

enum class WireFormat { kAuto, kFloat32, kBFloat16, kInt8 };
enum class Engine { kBuiltin, kExternal };
enum class LinkKind { kAuto, kGloo, kSockets };
enum class Encryption { kNone, kTls };

std::string_view to_string(WireFormat value);
std::string_view to_string(Engine value);
std::string_view to_string(LinkKind value);
std::string_view to_string(Encryption value);

/// How activations and gradients at the cut travel. Auto: never below the job's precision.
struct WireSpec {
  WireFormat activations = WireFormat::kAuto;
  WireFormat gradients = WireFormat::kAuto;
  bool operator==(const WireSpec&) const = default;
};

inline constexpr std::string_view kCutAuto = "Auto";
inline constexpr std::string_view kCutInput = "Input";

/// `spec.split`: what runs on the workers.
struct SplitSpec {
  std::string cut{
      kCutAuto};  // kCutAuto, kCutInput (pixels only), or the last layer that workers run
  std::optional<int> share_percent;  // absent: Auto; says something only where the cut is a layer
  int min_server_percent = 0;
  std::optional<int64_t> max_bytes_per_second;  // of plans that are found; absent: no bound
  WireSpec wire;
  bool operator==(const SplitSpec&) const = default;
};

/// `spec.server`: pods = replicas; ranks = replicas x max(1, gpus).
struct ServerSpec {
  int replicas = 1;
  int gpus = 0;  // of each pod; 0: the CPU
  std::string gpu_resource_name = "nvidia.com/gpu";
  Engine engine = Engine::kBuiltin;
  std::optional<nlohmann::json> pod_template;  // "template": a partial PodTemplateSpec, an object
  bool operator==(const ServerSpec&) const;
};

/// `spec.workers.autoscaling`.
struct AutoscalingSpec {
  int target_stall_percent = 5;
  std::chrono::seconds up_window{30};
  std::chrono::seconds down_window{300};
  bool operator==(const AutoscalingSpec&) const = default;
};

/// `spec.workers`.
struct WorkersSpec {
  int replicas = 0;
  int min_replicas = 0;
  std::optional<int> max_replicas;  // absent: no bound, and no autoscaling
  std::optional<AutoscalingSpec> autoscaling;
  std::optional<nlohmann::json> pod_template;
  bool operator==(const WorkersSpec&) const;
};

/// `spec.network`.
struct NetworkSpec {
  int port = 29400;  // kJoinPort
  LinkKind link = LinkKind::kAuto;
  std::optional<std::string> interface;  // absent: the one the system routes by
  Encryption encryption = Encryption::kNone;
  bool operator==(const NetworkSpec&) const = default;
};

}  // namespace outrigger::api
