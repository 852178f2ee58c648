#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "api/command_line.h"
#include "api/exit_codes.h"
#include "api/launch.h"
#include "common/log.h"
#include "common/stop_signal.h"
#include "gpu-server/ranks/rank_processes.h"
#include "gpu-server/server.h"

int main(int argc, char** argv) {
  using namespace outrigger;
  const std::span<const char* const> arguments(argv + 1, static_cast<size_t>(argc - 1));
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::fputs(api::launch_help(api::Role::kServer, "outrigger-gpu-server").c_str(), stdout);
      return 0;
    }
  }
  try {
    StopSignal stop;
    const api::Launch launch = api::read_command_line(api::Role::kServer, arguments);
    log::set_process_name(launch.rank == 0 ? "server" : "server " + std::to_string(launch.rank));
    log::set_level(log::parse_level(launch.log_level));
    if (launch.ranks > 1) return gpu_server::run_ranks(launch, stop.token());
    return static_cast<int>(gpu_server::run_server(launch, stop.token()));
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return static_cast<int>(api::exit_code_of(error));
  }
}
