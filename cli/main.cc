#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "api/exit_codes.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  using namespace outrigger;
  CLI::App program(
      "Outrigger trains convolutional networks split between a server (GPU or CPU) and elastic CPU "
      "workers that read, "
      "decode and augment the images and, where it pays, run the first layers.",
      "outrigger");
  program.require_subcommand(1);
  program.footer(
      "First steps:\n"
      "  outrigger generate faces demo/faces\n"
      "  outrigger run manifests/examples/faces-local.yaml --workers 2 --mount faces=demo/faces\n"
      "`outrigger COMMAND --help` tells more.");
  cli::add_commands(program);
  try {
    cli::refuse_unknown_command(program, std::vector<std::string>(argv + 1, argv + argc));
    program.parse(argc, argv);
    return static_cast<int>(api::ExitCode::kDone);
  } catch (const CLI::Success& told) {  // --help, --version
    return program.exit(told);
  } catch (const CLI::RuntimeError& ended) {
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    program.exit(error);
    return static_cast<int>(api::ExitCode::kBadUsage);
  } catch (const std::exception& error) {
    std::cerr << "outrigger: " << error.what() << "\n";
    return static_cast<int>(api::exit_code_of(error));
  }
}
