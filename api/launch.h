#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/training_job.h"

namespace outrigger::api {

/// Where a server runs the network: as the job says (on a GPU where spec.server.gpus asks for one),
/// or as it is told.
enum class DeviceChoice { kAuto, kCpu, kCuda };

/// Folders by the volume claims that they stand for.
using Mounts = std::map<std::string, std::filesystem::path>;

/// What a launcher (the operator, `outrigger run`, Slurm, a person) tells one process of a job. A
/// plain value.
struct Launch {
  Role role = Role::kServer;
  std::filesystem::path job_file;  // server: the TrainingJob
  int rank = 0;                    // server: this process among replicas
  int replicas = 1;                // server: processes in the all-reduce
  int ranks = 1;  // server: of this launch, from `rank` on; with several it starts one process each
  int ranks_on_machine = 1;  // server: that share its memory, where each is started by itself
  int index = 0;             // worker: a number for logs and names
  int64_t attempt = 0;       // server: how often the job was (re)started; fences checkpoints
  std::string server;        // worker: host:port to join
  std::string rendezvous;    // server: rank 0's host:port, where replicas > 1
  std::filesystem::path token_file;          // the join token; a server without one makes its own
  std::filesystem::path control_token_file;  // server: the token for stop and plan
  std::string listen = "::";                 // the address that own ports bind to; this is all of
                                             // IPv4 and, where the machine has it, IPv6
  std::optional<int> port;  // server: instead of spec.network.port; 0: any free one
  int status_port = 8080;   // kStatusPort; 0: any free one
  std::optional<std::filesystem::path> output;      // instead of spec.output.path
  std::optional<std::filesystem::path> checkpoint;  // instead of spec.checkpoint.path
  Mounts mounts;                                    // where no volume is mounted
  bool resume = false;                        // go on from the newest valid checkpoint, if any
  std::optional<int> threads;                 // absent: from the cgroup's quota
  DeviceChoice device = DeviceChoice::kAuto;  // server
  bool tf32 = false;              // server on a GPU: Float32 products on tensor cores, with 10 bits
  bool nondeterministic = false;  // likewise: algorithms too that give other bits each time
  /// For experiments: compute nothing, take the times of this profile (`outrigger plan -o json`) on
  /// so many cores of the machine that measured it.
  std::optional<std::filesystem::path> emulate;
  int emulate_cores = 1;
  /// For experiments: what is sent on a link, megabits a second (0: no limit), and for how long
  /// what is received is held back.
  int link_megabits = 0;
  int link_milliseconds = 0;
  std::optional<std::filesystem::path>
      termination_file;  // the last words: progress and cause, JSON
  std::string log_level = "info";
  bool operator==(const Launch&) const = default;
};

/// A variable's value, or nothing; `system_environment` reads the process's own.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;
std::optional<std::string> system_environment(std::string_view name);

/// Reads what `role` may be told, from the OUTRIGGER_… environment first and then from the flags in
/// `arguments` (argv without the program's name; `--flag value` or `--flag=value`), which win.
/// Throws InvalidInput that names the flag or the variable, the value and what is allowed, for an
/// unknown flag with the nearest known one.
Launch parse_launch(Role role, std::span<const char* const> arguments,
                    const Environment& environment = system_environment);

/// Whether one of the arguments is --help or -h; ask before parse_launch.
bool asks_for_help(std::span<const char* const> arguments);
/// The text for `--help`: every flag of `role` with its variable and what it does.
std::string launch_help(Role role, std::string_view program);

/// The flags that make `parse_launch` give the same Launch again; for launchers that start
/// processes.
std::vector<std::string> launch_arguments(const Launch& launch);
/// The same as variables, what is usual included, for a program that is not ours. Without what has
/// no variable.
std::map<std::string, std::string> launch_environment(const Launch& launch);

/// Ranks that share the memory of this server's machine: as the launch says, those of a pod at the
/// least.
int ranks_on_machine(const TrainingJob& job, const Launch& launch);

/// Throws InvalidInput where a mount stands for no claim of the job: a misspelt one would go
/// unnoticed where a volume is mounted as well.
void check_mounts(const TrainingJob& job, const Mounts& mounts);

/// Where a path of the job (data, weights) lies on this machine: a path below kDataMountPath lies
/// in the folder that `mounts` gives for data.volumeClaimName; any other is as it is. Throws
/// InvalidInput where the job names a claim and neither a mount nor kDataMountPath is there.
std::filesystem::path data_path(const TrainingJob& job, const Launch& launch,
                                const std::string& path);
/// `<output.path>/<job>`, as this launch has it. InvalidInput as above for output's claim.
std::filesystem::path run_directory(const TrainingJob& job, const Launch& launch);
/// `<checkpoint.path>/<job>`; run_directory where the job names no checkpoint path.
std::filesystem::path checkpoint_directory(const TrainingJob& job, const Launch& launch);

}  // namespace outrigger::api
