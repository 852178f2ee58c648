#include "api/crd.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"

namespace outrigger::cli {

void add_crd(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "crd", "Print the CustomResourceDefinition that a cluster needs to know job files");
  command->footer("  outrigger crd | kubectl apply --server-side -f -");
  command->callback([] { std::cout << api::custom_resource_definition_yaml(); });
}

}  // namespace outrigger::cli
