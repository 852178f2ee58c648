#include "api/launch.h"

#include <algorithm>
#include <cstdlib>

#include "api/launch_options.h"
#include "api/names.h"
#include "api/schema/scalar.h"
#include "common/error.h"
#include "common/nearest.h"

namespace outrigger::api {
namespace {

namespace fs = std::filesystem;

void set_from(const LaunchOption& option, std::string_view origin, const std::string& value,
              Launch& launch) {
  try {
    option.set(launch, value);
  } catch (const InvalidInput& e) {
    throw InvalidInput(std::string(origin) + ": " + e.what());
  }
}

const LaunchOption& find_option(Role role, const std::string& flag) {
  std::vector<std::string> known;
  for (const LaunchOption& option : launch_options()) {
    if (!option.is_for(role)) continue;
    if (option.flag == flag) return option;
    known.emplace_back(option.flag);
  }
  std::string message = schema::in_quotes(flag) + " is no flag of this program";
  if (const auto meant = nearest(flag, known)) message += "; did you mean " + *meant + "?";
  throw InvalidInput(message + (message.back() == '?' ? "" : "; --help lists them"));
}

/// Of a variable. Of flags there are as many as values, whose folders may have commas.
std::vector<std::string> values_in(const LaunchOption& option, const std::string& text) {
  if (!option.is_list) return {text};
  std::vector<std::string> values;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    values.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return values;
}

void read_environment(Role role, const Environment& environment, Launch& launch) {
  if (const auto other = environment(kRoleVariable)) {
    const std::string_view own = role == Role::kServer ? kServerRole : kWorkerRole;
    if (*other != own) {
      throw InvalidInput(std::string(kRoleVariable) + ": " + schema::in_quotes(*other) +
                         " is not allowed; this program is the " + std::string(own));
    }
  }
  for (const LaunchOption& option : launch_options()) {
    if (!option.is_for(role) || option.variable.empty()) continue;
    const auto text = environment(option.variable);
    if (!text) continue;
    for (const std::string& value : values_in(option, *text))
      set_from(option, option.variable, value, launch);
  }
}

void read_arguments(Role role, std::span<const char* const> arguments, Launch& launch) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const LaunchOption& option = find_option(role, flag);
    if (equals != argument.npos) {
      set_from(option, flag, argument.substr(equals + 1), launch);
    } else if (option.is_switch()) {
      set_from(option, flag, "true", launch);
    } else if (++i < arguments.size()) {
      set_from(option, flag, arguments[i], launch);
    } else {
      throw InvalidInput(flag + ": a value is missing: " + std::string(option.value));
    }
  }
}

// Of each option.
std::vector<std::vector<std::string>> values_of(const Launch& launch) {
  std::vector<std::vector<std::string>> values;
  for (const LaunchOption& option : launch_options()) values.push_back(option.get(launch));
  return values;
}

std::vector<std::string> claims_of(const TrainingJobSpec& spec) {
  std::vector<std::string> claims;
  for (const auto* claim : {&spec.data.volume_claim_name, &spec.output.volume_claim_name,
                            &spec.checkpoint.volume_claim_name}) {
    if (*claim && std::ranges::find(claims, **claim) == claims.end()) claims.push_back(**claim);
  }
  return claims;
}

// The folder of a claim: its mount, or where a cluster mounts it, if that is there.
fs::path claim_folder(const Launch& launch, const std::string& claim, const fs::path& mounted_at) {
  const auto mount = launch.mounts.find(claim);
  if (mount != launch.mounts.end()) return mount->second;
  std::error_code ignored;
  if (fs::exists(mounted_at, ignored)) return mounted_at;
  throw InvalidInput("the volume claim " + claim +
                     " has no folder on this machine; give one with --mount " + claim + "=FOLDER");
}

}  // namespace

std::optional<std::string> system_environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Launch parse_launch(Role role, std::span<const char* const> arguments,
                    const Environment& environment) {
  Launch launch;
  launch.role = role;
  read_environment(role, environment, launch);
  read_arguments(role, arguments, launch);
  if (launch.rank >= launch.replicas) {
    throw InvalidInput("--rank: " + std::to_string(launch.rank) +
                       " is too large; less than --replicas, which is " +
                       std::to_string(launch.replicas));
  }
  if (launch.ranks > launch.replicas - launch.rank) {
    throw InvalidInput(
        "--ranks: " + std::to_string(launch.ranks) + " from --rank " + std::to_string(launch.rank) +
        " on are too many; --replicas, all of them, is " + std::to_string(launch.replicas));
  }
  if (launch.ranks > 1 && launch.ranks < launch.replicas && launch.rendezvous.empty()) {
    throw InvalidInput(
        "--rendezvous is missing: --ranks " + std::to_string(launch.ranks) + " of " +
        std::to_string(launch.replicas) +
        " start here, and all must be told an address of rank 0 that the others reach");
  }
  return launch;
}

bool asks_for_help(std::span<const char* const> arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const char* argument) {
    return std::string_view(argument) == "--help" || std::string_view(argument) == "-h";
  });
}

std::string launch_help(Role role, std::string_view program) {
  const bool server = role == Role::kServer;
  std::string text =
      "Usage: " + std::string(program) +
      (server ? " --job FILE [flags]\n" : " --server HOST:PORT --token-file FILE [flags]\n") +
      (server ? "The process that owns the model and every optimizer step of one TrainingJob.\n"
              : "A worker: makes micro-batches for a server. Joins and leaves at any time.\n") +
      "\nFlags, and the environment variables that say the same:\n";
  for (const LaunchOption& option : launch_options()) {
    if (!option.is_for(role)) continue;
    std::string left = "  " + std::string(option.flag) + (option.is_switch() ? "" : " ") +
                       std::string(option.value);
    left.resize(std::max<size_t>(left.size() + 1, 31), ' ');
    text += left + std::string(option.help);
    if (!option.variable.empty()) text += " [" + std::string(option.variable) + "]";
    text += '\n';
  }
  return text + "  --help                       This text.\n";
}

std::vector<std::string> launch_arguments(const Launch& launch) {
  static const auto usual = values_of(Launch());
  std::vector<std::string> arguments;
  const auto options = launch_options();
  for (size_t i = 0; i < options.size(); ++i) {
    const LaunchOption& option = options[i];
    if (!option.is_for(launch.role)) continue;
    const auto values = option.get(launch);
    if (values == usual[i]) continue;
    for (const std::string& value : values) {
      arguments.emplace_back(option.flag);
      if (!option.is_switch()) arguments.push_back(value);
    }
  }
  return arguments;
}

std::map<std::string, std::string> launch_environment(const Launch& launch) {
  std::map<std::string, std::string> variables{
      {std::string(kRoleVariable),
       std::string(launch.role == Role::kServer ? kServerRole : kWorkerRole)}};
  for (const LaunchOption& option : launch_options()) {
    if (!option.is_for(launch.role) || option.variable.empty()) continue;
    const auto values = option.get(launch);
    if (values.empty()) continue;
    std::string& text = variables[std::string(option.variable)];
    for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  }
  return variables;
}

int ranks_on_machine(const TrainingJob& job, const Launch& launch) {
  return std::max(launch.ranks_on_machine, ranks_per_pod(job.spec));
}

void check_mounts(const TrainingJob& job, const Mounts& mounts) {
  const std::vector<std::string> claims = claims_of(job.spec);
  const auto strange = std::ranges::find_if(mounts, [&](const auto& mount) {
    return std::ranges::find(claims, mount.first) == claims.end();
  });
  if (strange == mounts.end()) return;
  std::string named;
  for (const std::string& claim : claims) named += (named.empty() ? "" : ", ") + claim;
  if (named.empty()) named = "none, so its paths are used";
  throw InvalidInput("--mount: " + schema::in_quotes(strange->first) +
                     " is no volume claim of the job; it names " + named);
}

fs::path data_path(const TrainingJob& job, const Launch& launch, const std::string& path) {
  const std::string root(kDataMountPath);
  const bool on_volume = path == root || path.compare(0, root.size() + 1, root + "/") == 0;
  if (!job.spec.data.volume_claim_name || !on_volume) return path;
  const fs::path folder = claim_folder(launch, *job.spec.data.volume_claim_name, root);
  // Not what is behind the prefix: of /data//train that is absolute and would leave the folder.
  const fs::path below = fs::path(path).lexically_relative(root);
  return below == "." ? folder : folder / below;
}

fs::path run_directory(const TrainingJob& job, const Launch& launch) {
  const OutputSpec& output = job.spec.output;
  if (launch.output) return *launch.output / job.metadata.name;
  if (!output.volume_claim_name) return fs::path(output.path) / job.metadata.name;
  return claim_folder(launch, *output.volume_claim_name, output.path) / job.metadata.name;
}

fs::path checkpoint_directory(const TrainingJob& job, const Launch& launch) {
  const CheckpointSpec& checkpoint = job.spec.checkpoint;
  if (launch.checkpoint) return *launch.checkpoint / job.metadata.name;
  if (!checkpoint.path) return run_directory(job, launch);
  if (!checkpoint.volume_claim_name) return fs::path(*checkpoint.path) / job.metadata.name;
  return claim_folder(launch, *checkpoint.volume_claim_name, *checkpoint.path) / job.metadata.name;
}

}  // namespace outrigger::api
