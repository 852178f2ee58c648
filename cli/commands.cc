#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "cli/output.h"
#include "common/nearest.h"

namespace outrigger::cli {

void refuse_unknown_command(const CLI::App& program, const std::string& word) {
  if (word.starts_with('-')) return;
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::ranges::find(names, word) != names.end()) return;
  const auto meant = nearest(word, names);
  throw CLI::ParseError(
      "there is no command \"" + word + "\"" + (meant ? "; did you mean " + *meant + "?" : ""),
      CLI::ExitCodes::ExtrasError);
}

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
