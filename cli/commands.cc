#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "cli/output.h"
#include "common/nearest.h"

namespace outrigger::cli {

namespace {

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void refuse_unknown_command(const CLI::App& program, std::span<const std::string> words) {
  const auto commands = program.get_subcommands([](const CLI::App*) { return true; });
  if (commands.empty()) return;
  const std::vector<std::string> names = names_of(commands);
  const std::string whole = program.get_parent() == nullptr ? "" : program.get_name() + " ";
  if (words.empty())
    throw CLI::ParseError(
        (whole.empty() ? "a command is needed: " : whole + "needs one of: ") + listed(names),
        CLI::ExitCodes::RequiredError);
  const std::string& word = words.front();
  if (word.starts_with('-')) return;
  const auto found = std::ranges::find(names, word);
  if (found != names.end())
    return refuse_unknown_command(*commands[static_cast<size_t>(found - names.begin())],
                                  words.subspan(1));
  const auto meant = nearest(word, names);
  throw CLI::ParseError(
      "there is no command \"" + whole + word + "\"; " +
          (meant ? "did you mean " + whole + *meant + "?" : "there are: " + listed(names)),
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
