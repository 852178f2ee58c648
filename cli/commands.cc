#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/output.h"

namespace outrigger::cli {

void add_commands(CLI::App& program) {
  add_run(program);
  add_plan(program);
  add_report(program);
  add_sweep(program);
  add_generate(program);
  add_evaluate(program);
  add_embed(program);
  add_validate(program);
  add_crd(program);
  add_version(program);
  // Runs behind that of the command.
  program.final_callback([] { finish_output(std::cout); });
}

}  // namespace outrigger::cli
