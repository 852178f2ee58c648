#include "api/command_line.h"

#include <string>

#include "api/exit_codes.h"
#include "api/names.h"

namespace outrigger::api {
namespace {

[[noreturn]] void missing(const char* flag, std::string_view variable) {
  throw InvalidInput(std::string(flag) + " is missing; it, or " + std::string(variable) +
                     ", must be given; --help tells more");
}

}  // namespace

Launch read_command_line(Role role, std::span<const char* const> arguments,
                         const Environment& environment) {
  try {
    Launch launch = parse_launch(role, arguments, environment);
    if (role == Role::kServer && launch.job_file.empty()) missing("--job FILE", kJobFileVariable);
    if (role == Role::kWorker && launch.server.empty())
      missing("--server HOST:PORT", kServerVariable);
    return launch;
  } catch (const InvalidInput& error) {
    throw Failure(ExitCode::kBadUsage, error.what());
  }
}

}  // namespace outrigger::api
