#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/names.h"
#include "cli/commands.h"
#include "nn/cpu/instruction_set.h"

namespace outrigger::cli {
namespace {

void tell(const std::string& format) {
  const std::string instructions = nn::cpu::best_instruction_set();
  if (format == "json") {
    std::cout << nlohmann::ordered_json{{"version", OUTRIGGER_VERSION},
                                        {"apiVersion", api::kApiVersion},
                                        {"instructionSet", instructions}}
              << "\n";
    return;
  }
  std::cout << "outrigger " << OUTRIGGER_VERSION << "\n"
            << "job files: " << api::kApiVersion << "\n"
            << "this machine: " << instructions << "\n";
}

}  // namespace

void add_version(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("version", "Say which version this is and what the machine can do");
  program.set_version_flag("--version", "outrigger " OUTRIGGER_VERSION);
  const auto format = std::make_shared<std::string>("text");
  command->add_option("-o,--format", *format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "The instruction set is the most that this machine's cores have; a job records its own, and "
      "a\n"
      "worker that lacks it sends pixels and runs no layers.");
  command->callback([format] { tell(*format); });
}

}  // namespace outrigger::cli
