#include "api/launch_options.h"

#include "api/names.h"
#include "api/schema/scalar.h"
#include "common/error.h"

namespace outrigger::api {
namespace {

using Values = std::vector<std::string>;
using schema::in_quotes;
using For = LaunchOption::For;

std::string to_text(const std::filesystem::path& path) { return path.string(); }
std::string to_text(const std::string& text) { return text; }
std::string to_text(int64_t number) { return std::to_string(number); }
template <typename T>
std::string to_text(const std::optional<T>& value) {
  return value ? to_text(*value) : "";
}

/// Text and paths: anything but nothing.
template <typename T>
LaunchOption text_option(LaunchOption option, T Launch::*member) {
  option.set = [member](Launch& launch, const std::string& value) {
    if (value.empty()) throw InvalidInput("an empty value is not allowed");
    launch.*member = value;
  };
  option.get = [member](const Launch& launch) {
    const std::string value = to_text(launch.*member);
    return value.empty() ? Values{} : Values{value};
  };
  return option;
}

struct Range {
  int64_t least;
  int64_t most;
};

template <typename T>
LaunchOption number_option(LaunchOption option, T Launch::*member, Range range) {
  option.set = [member, range](Launch& launch, const std::string& value) {
    const auto number = schema::parse_integer(value);
    if (!number || *number < range.least || *number > range.most) {
      throw InvalidInput(in_quotes(value) + " is not allowed; a whole number from " +
                         std::to_string(range.least) + " to " + std::to_string(range.most) +
                         " is needed");
    }
    using Number = std::conditional_t<std::is_same_v<T, int64_t>, int64_t, int>;
    launch.*member = static_cast<Number>(*number);
  };
  option.get = [member](const Launch& launch) {
    const std::string value = to_text(launch.*member);
    return value.empty() ? Values{} : Values{value};
  };
  return option;
}

void set_address(std::string& address, const std::string& value) {
  const size_t colon = value.rfind(':');
  const auto port =
      colon == value.npos ? std::nullopt : schema::parse_integer(value.substr(colon + 1));
  if (colon == 0 || !port || *port < 1 || *port > 65535) {
    throw InvalidInput(in_quotes(value) +
                       " is not allowed; HOST:PORT is needed, like 10.0.0.7:29400");
  }
  address = value;
}

LaunchOption address_option(LaunchOption option, std::string Launch::*member) {
  option.set = [member](Launch& launch, const std::string& value) {
    set_address(launch.*member, value);
  };
  option.get = [member](const Launch& launch) {
    return (launch.*member).empty() ? Values{} : Values{launch.*member};
  };
  return option;
}

LaunchOption mount_option(LaunchOption option) {
  option.is_list = true;
  option.set = [](Launch& launch, const std::string& value) {
    const size_t equals = value.find('=');
    if (equals == value.npos || equals == 0 || equals + 1 == value.size()) {
      throw InvalidInput(in_quotes(value) +
                         " is not allowed; CLAIM=FOLDER is needed, like faces=/home/me/faces");
    }
    launch.mounts[value.substr(0, equals)] = value.substr(equals + 1);
  };
  option.get = [](const Launch& launch) {
    Values values;
    for (const auto& [claim, folder] : launch.mounts)
      values.push_back(claim + "=" + folder.string());
    return values;
  };
  return option;
}

LaunchOption switch_option(LaunchOption option, bool Launch::*member) {
  option.set = [member](Launch& launch, const std::string& value) {
    if (value != "true" && value != "false") {
      throw InvalidInput(in_quotes(value) + " is not allowed; true or false is needed");
    }
    launch.*member = value == "true";
  };
  option.get = [member](const Launch& launch) {
    return launch.*member ? Values{"true"} : Values{};
  };
  return option;
}

LaunchOption level_option(LaunchOption option) {
  option.set = [](Launch& launch, const std::string& value) {
    if (value != "debug" && value != "info" && value != "warning" && value != "error") {
      throw InvalidInput(in_quotes(value) + " is not allowed; one of debug, info, warning, error");
    }
    launch.log_level = value;
  };
  option.get = [](const Launch& launch) { return Values{launch.log_level}; };
  return option;
}

struct DeviceName {
  std::string_view name;
  DeviceChoice choice;
};
constexpr DeviceName kDeviceNames[] = {
    {"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}};

LaunchOption device_option(LaunchOption option) {
  option.set = [](Launch& launch, const std::string& value) {
    for (const DeviceName& device : kDeviceNames) {
      if (device.name != value) continue;
      launch.device = device.choice;
      return;
    }
    throw InvalidInput(in_quotes(value) + " is not allowed; one of auto, cpu, cuda");
  };
  option.get = [](const Launch& launch) {
    Values values;
    for (const DeviceName& device : kDeviceNames) {
      if (device.choice == launch.device) values.emplace_back(device.name);
    }
    return values;
  };
  return option;
}

constexpr Range kPorts{0, 65535};
constexpr Range kCounts{0, 1'000'000};
// A launcher may count on from a time, so that a job made anew is later than its namesake.
constexpr int64_t kMostAttempts = 1'000'000'000'000;

std::vector<LaunchOption> make_options() {
  return {
      text_option(
          {"--job", kJobFileVariable, "FILE", "The TrainingJob, YAML or JSON.", For::kServer},
          &Launch::job_file),
      address_option({"--server", kServerVariable, "HOST:PORT",
                      "The server to join; tried for ever, unless it refuses five times in a row.",
                      For::kWorker},
                     &Launch::server),
      text_option({"--token-file", kTokenFileVariable, "FILE",
                   "File with the join token; a server without one writes its own.", For::kBoth},
                  &Launch::token_file),
      text_option({"--control-token-file", kControlTokenFileVariable, "FILE",
                   "File with the token for stop and plan.", For::kServer},
                  &Launch::control_token_file),
      mount_option(
          {"--mount", kMountsVariable, "CLAIM=FOLDER",
           "Folder that stands for a volume claim; may be given several times, in the variable "
           "with commas.",
           For::kBoth}),
      text_option(
          {"--output", kOutputVariable, "FOLDER", "Instead of spec.output.path.", For::kServer},
          &Launch::output),
      text_option({"--checkpoint", kCheckpointVariable, "FOLDER",
                   "Instead of spec.checkpoint.path.", For::kServer},
                  &Launch::checkpoint),
      switch_option({"--resume", kResumeVariable, "",
                     "Go on from the newest checkpoint, if there is one.", For::kServer},
                    &Launch::resume),
      number_option(
          {"--rank", kRankVariable, "N", "This server among the replicas, from 0.", For::kServer},
          &Launch::rank, kCounts),
      number_option(
          {"--replicas", kReplicasVariable, "N", "Servers that train together.", For::kServer},
          &Launch::replicas, {1, kCounts.most}),
      // No variable: those that it starts would inherit it.
      number_option({"--ranks", "", "N", "Ranks to start here, a process each, from --rank on.",
                     For::kServer},
                    &Launch::ranks, {1, 1024}),
      number_option({"--ranks-on-machine", "", "N",
                     "Ranks that share this machine's memory, where each is started by itself.",
                     For::kServer},
                    &Launch::ranks_on_machine, {1, kCounts.most}),
      address_option({"--rendezvous", kRendezvousVariable, "HOST:PORT",
                      "Where rank 0 gathers the replicas.", For::kServer},
                     &Launch::rendezvous),
      number_option({"--attempt", kAttemptVariable, "N",
                     "How often the job was started; an older attempt gives way.", For::kServer},
                    &Launch::attempt, {0, kMostAttempts}),
      number_option(
          {"--index", kIndexVariable, "N", "A number for this worker in logs.", For::kWorker},
          &Launch::index, kCounts),
      text_option(
          {"--listen", kListenVariable, "ADDRESS", "Address that own ports bind to.", For::kBoth},
          &Launch::listen),
      number_option(
          {"--port", "", "PORT", "Instead of spec.network.port; 0: any free one.", For::kServer},
          &Launch::port, kPorts),
      number_option({"--status-port", kStatusPortVariable, "PORT",
                     "Health, metrics and status; 0: any free one.", For::kBoth},
                    &Launch::status_port, kPorts),
      number_option({"--threads", kThreadsVariable, "N",
                     "Instead of what the cgroup's quota allows.", For::kBoth},
                    &Launch::threads, {1, 4096}),
      device_option({"--device", kDeviceVariable, "DEVICE",
                     "auto (a GPU where spec.server.gpus asks for one), cpu or cuda.",
                     For::kServer}),
      switch_option({"--tf32", kTf32Variable, "",
                     "On a GPU: Float32's convolutions and products on tensor cores, with 10 bits "
                     "of their factors.",
                     For::kServer},
                    &Launch::tf32),
      switch_option({"--nondeterministic", kNondeterministicVariable, "",
                     "On a GPU: also algorithms that give other bits each time, where they are "
                     "faster.",
                     For::kServer},
                    &Launch::nondeterministic),
      text_option(
          {"--emulate", "", "FILE",
           "For experiments: compute nothing, take the times of this profile (outrigger plan "
           "-o json).",
           For::kBoth},
          &Launch::emulate),
      number_option(
          {"--emulate-cores", "", "N",
           "How many cores of the profile's machine the device or worker is worth; of its GPUs the "
           "device, where it had one.",
           For::kBoth},
          &Launch::emulate_cores, {1, 1'000'000}),
      number_option({"--link-megabits", "", "N",
                     "For experiments: what is sent on a link, a second; 0: no limit.", For::kBoth},
                    &Launch::link_megabits, {0, 1'000'000}),
      number_option({"--link-milliseconds", "", "N",
                     "For experiments: for how long what is received is held back.", For::kBoth},
                    &Launch::link_milliseconds, {0, 1000}),
      text_option(
          {"--termination-file", kTerminationFileVariable, "FILE",
           "Last words for the launcher: progress and the cause of failure, JSON.", For::kBoth},
          &Launch::termination_file),
      level_option({"--log-level", kLogLevelVariable, "LEVEL", "debug, info, warning or error.",
                    For::kBoth}),
  };
}

}  // namespace

std::span<const LaunchOption> launch_options() {
  static const std::vector<LaunchOption> options = make_options();
  return options;
}

}  // namespace outrigger::api
