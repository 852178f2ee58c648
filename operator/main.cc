#include <malloc.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <span>
#include <string>

#include "api/exit_codes.h"
#include "api/launch.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/stop_signal.h"
#include "operator/controller/manager.h"
#include "operator/flags.h"

namespace outrigger::controller {
namespace {

// What many threads keep for long in a heap each is scattered between what they threw away. Pages
// and lists, which are large and short-lived, never are of a heap: set, the limit does not grow.
void keep_heaps_small() {
  constexpr int kHeaps = 2;
  constexpr int kLarge = 128 << 10;
  mallopt(M_ARENA_MAX, kHeaps);
  mallopt(M_MMAP_THRESHOLD, kLarge);
}

// Two lives of one pod are two candidates.
std::string own_identity() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string bytes = random_bytes(8);
  return std::string(host.data()) + "_" + to_hex(std::as_bytes(std::span(bytes)));
}

ManagerOptions options_from(const Flags& flags) {
  ManagerOptions options;
  options.api_server = kube::find_config(flags.kubeconfig, flags.context);
  options.namespaces = flags.namespaces;
  options.workers = flags.workers;
  options.listen = flags.listen;
  options.status_port = flags.status_port;
  options.health_port = flags.health_port;
  options.elect_leader = flags.elect_leader;
  options.lease_ns = flags.lease_ns.empty() ? options.api_server.ns : flags.lease_ns;
  options.lease_name = flags.lease_name;
  options.identity = own_identity();
  options.jobs = flags.jobs;
  options.jobs.token_key = read_token_key(flags.token_key_file);
  return options;
}

int run(std::span<const char* const> arguments) {
  keep_heaps_small();
  StopSignal stop;
  const Flags flags = parse_flags(arguments);
  log::set_process_name("operator");
  log::set_level(log::parse_level(flags.log_level));
  Manager manager(options_from(flags));
  log::info("health and metrics on port {}", manager.status_port());
  if (manager.run(stop.token()) == Manager::End::kStopped) return 0;
  log::error("the lease is lost; another operator works on");
  return static_cast<int>(api::ExitCode::kPeerLost);
}

}  // namespace
}  // namespace outrigger::controller

int main(int argc, char** argv) {
  using namespace outrigger;
  const std::span<const char* const> arguments(argv + 1, static_cast<size_t>(argc - 1));
  if (api::asks_for_help(arguments)) {
    std::fputs(controller::flags_help().c_str(), stdout);
    return 0;
  }
  try {
    return controller::run(arguments);
  } catch (const InvalidInput& error) {
    // All that it reads before it works is what flags and variables say and name.
    log::error("{}", error.what());
    return static_cast<int>(api::ExitCode::kBadUsage);
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return static_cast<int>(api::exit_code_of(error));
  }
}
