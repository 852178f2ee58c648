#include "operator/flags.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "api/exit_codes.h"
#include "common/error.h"
#include "common/file.h"
#include "common/nearest.h"

namespace outrigger::controller {
namespace {

constexpr size_t kShortestKey = 32;

struct Flag {
  const char* name;
  const char* value;  // in the help
  const char* help;
  std::function<void(Flags&, const std::string&)> set;
};

struct Range {
  int64_t least;
  int64_t most;
};

int64_t number(const std::string& text, Range range) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < range.least || value > range.most) {
    throw InvalidInput("'" + text + "' is not allowed; a number from " +
                       std::to_string(range.least) + " to " + std::to_string(range.most));
  }
  return value;
}

bool truth(const std::string& text) {
  if (text != "true" && text != "false")
    throw InvalidInput("'" + text + "' is not allowed; true or false is needed");
  return text == "true";
}

std::string level(const std::string& text) {
  if (text != "debug" && text != "info" && text != "warning" && text != "error")
    throw InvalidInput("'" + text + "' is not allowed; one of debug, info, warning, error");
  return text;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "name=value".
std::pair<std::string, std::string> assignment(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0)
    throw InvalidInput("'" + text + "' is not allowed; NAME=VALUE is needed");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Extended resources, as device plugins have them: domain/name.
void take_resource(std::map<std::string, int64_t>& resources, const std::string& text) {
  const auto [name, count] = assignment(text);
  const size_t slash = name.find('/');
  if (slash == name.npos || slash == 0 || slash + 1 == name.size())
    throw InvalidInput("'" + name + "' is no resource of a device plugin, such as rdma/hca");
  resources[name] = number(count, {1, 1024});
}

void take_variable(std::map<std::string, std::string>& variables, const std::string& text) {
  const auto [name, value] = assignment(text);
  const bool letters =
      std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
  if (!letters || is_digit(name.front()))
    throw InvalidInput("'" + name + "' is no name of a variable, such as NCCL_IB_HCA");
  if (name.starts_with("OUTRIGGER_"))
    throw InvalidInput("'" + name + "' is for the operator itself to set");
  variables[name] = value;
}

std::vector<Flag> rdma_flags() {
  return {
      {"--rdma-resource", "NAME=N",
       "Of each server pod whose job has GPUs in several; may be given several times.",
       [](Flags& flags, const std::string& value) {
         take_resource(flags.jobs.rdma.resources, value);
       }},
      {"--rdma-resource-per-gpu", "NAME=N", "Likewise, for each GPU of the pod.",
       [](Flags& flags, const std::string& value) {
         take_resource(flags.jobs.rdma.resources_per_gpu, value);
       }},
      {"--rdma-variable", "NAME=VALUE",
       "For the environment of their containers; may be given several times.",
       [](Flags& flags, const std::string& value) {
         take_variable(flags.jobs.rdma.variables, value);
       }},
      {"--rdma-lock-memory", "", "These containers have the capability IPC_LOCK.",
       [](Flags& flags, const std::string& value) { flags.jobs.rdma.lock_memory = truth(value); }},
  };
}

std::vector<Flag> cluster_flags() {
  return {
      {"--kubeconfig", "FILE", "How to reach the API server; else KUBECONFIG, else the pod's own.",
       [](Flags& flags, const std::string& value) { flags.kubeconfig = value; }},
      {"--context", "NAME", "Context of the kubeconfig, instead of its current one.",
       [](Flags& flags, const std::string& value) { flags.context = value; }},
      {"--namespace", "NAME",
       "Runs the jobs of a namespace; may be given several times; else of all.",
       [](Flags& flags, const std::string& value) { flags.namespaces.push_back(value); }},
      {"--leader-elect", "true|false", "One of several operators works, the others wait.",
       [](Flags& flags, const std::string& value) { flags.elect_leader = truth(value); }},
      {"--lease-namespace", "NAME", "Where the Lease is; else the pod's namespace.",
       [](Flags& flags, const std::string& value) { flags.lease_ns = value; }},
      {"--lease-name", "NAME", "The Lease's name.",
       [](Flags& flags, const std::string& value) { flags.lease_name = value; }},
      {"--workers", "N", "Jobs that are worked on at a time.",
       [](Flags& flags, const std::string& value) {
         flags.workers = static_cast<int>(number(value, {1, 256}));
       }},
      {"--listen", "ADDRESS", "Address for health, readiness and metrics.",
       [](Flags& flags, const std::string& value) { flags.listen = value; }},
      {"--status-port", "PORT", "Port for them; 0: any free one.",
       [](Flags& flags, const std::string& value) {
         flags.status_port = static_cast<int>(number(value, {0, 65535}));
       }},
      {"--health-port", "PORT", "Another port for health and readiness alone; else there is none.",
       [](Flags& flags, const std::string& value) {
         flags.health_port = static_cast<int>(number(value, {0, 65535}));
       }},
      {"--log-level", "LEVEL", "debug, info, warning or error.",
       [](Flags& flags, const std::string& value) { flags.log_level = level(value); }},
  };
}

std::vector<Flag> job_flags() {
  return {
      {"--token-key-file", "FILE", "The key that jobs' tokens are made from, 32 bytes or more.",
       [](Flags& flags, const std::string& value) { flags.token_key_file = value; }},
      {"--server-image", "IMAGE", "Of server containers that name none.",
       [](Flags& flags, const std::string& value) { flags.jobs.server_image = value; }},
      {"--worker-image", "IMAGE", "Of worker containers that name none.",
       [](Flags& flags, const std::string& value) { flags.jobs.worker_image = value; }},
      {"--image-pull-secret", "NAME", "That pods pull with; may be given several times.",
       [](Flags& flags, const std::string& value) {
         flags.jobs.image_pull_secrets.push_back(value);
       }},
      {"--fs-group", "N", "Group that owns servers' volumes; else the cluster chooses it.",
       [](Flags& flags, const std::string& value) {
         flags.jobs.fs_group = number(value, {0, 4294967295});
       }},
      {"--gpu", "", "The server image can use a GPU.",
       [](Flags& flags, const std::string& value) { flags.jobs.gpu = truth(value); }},
      {"--job-log-level", "LEVEL", "The same for servers and workers.",
       [](Flags& flags, const std::string& value) { flags.jobs.process_log_level = level(value); }},
  };
}

const std::vector<Flag>& all_flags() {
  static const std::vector<Flag> flags = [] {
    auto all = job_flags();
    for (Flag& flag : rdma_flags()) all.push_back(std::move(flag));
    for (Flag& flag : cluster_flags()) all.push_back(std::move(flag));
    return all;
  }();
  return flags;
}

const Flag& find(const std::string& name) {
  std::vector<std::string> known;
  for (const Flag& flag : all_flags()) {
    if (flag.name == name) return flag;
    known.emplace_back(flag.name);
  }
  const auto meant = nearest(name, known);
  throw InvalidInput("'" + name + "' is no flag of this program" +
                     (meant ? "; did you mean " + *meant + "?" : "; --help lists them"));
}

void require(const Flags& flags) {
  if (flags.token_key_file.empty()) throw InvalidInput("--token-key-file: missing");
  if (flags.jobs.server_image.empty()) throw InvalidInput("--server-image: missing");
  if (flags.jobs.worker_image.empty()) throw InvalidInput("--worker-image: missing");
}

Flags read_flags(std::span<const char* const> arguments) {
  Flags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    const Flag& flag = find(argument.substr(0, equals));
    std::string value;
    if (equals != argument.npos) {
      value = argument.substr(equals + 1);
    } else if (*flag.value == '\0') {
      value = "true";
    } else if (++i < arguments.size()) {
      value = arguments[i];
    } else {
      throw InvalidInput(argument + ": a value is missing: " + flag.value);
    }
    try {
      flag.set(flags, value);
    } catch (const InvalidInput& error) {
      throw InvalidInput(std::string(flag.name) + ": " + error.what());
    }
  }
  require(flags);
  return flags;
}

}  // namespace

Flags parse_flags(std::span<const char* const> arguments) {
  try {
    return read_flags(arguments);
  } catch (const InvalidInput& error) {
    throw api::Failure(api::ExitCode::kBadUsage, error.what());
  }
}

std::string flags_help() {
  std::string text =
      "Usage: outrigger-operator --token-key-file FILE --server-image IMAGE --worker-image IMAGE\n"
      "Runs TrainingJobs on a Kubernetes cluster.\n\nFlags:\n";
  for (const Flag& flag : all_flags()) {
    std::string left = "  " + std::string(flag.name) + " " + flag.value;
    left.resize(std::max<size_t>(left.size() + 1, 34), ' ');
    text += left + flag.help + "\n";
  }
  return text + "  --help                          This text.\n";
}

std::string read_token_key(const std::filesystem::path& path) {
  std::string key = read_file(path, size_t{64} << 10);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  if (key.size() < kShortestKey) {
    throw api::Failure(api::ExitCode::kBadUsage,
                       path.string() + " holds a key of " + std::to_string(key.size()) +
                           " bytes; at least " + std::to_string(kShortestKey) + " are needed");
  }
  return key;
}

}  // namespace outrigger::controller
