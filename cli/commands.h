#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
}

/// The commands of `outrigger`, a file each. An `add_…` function adds its command to the program
/// with options, help and the action, which runs while the program parses its arguments. Actions
/// write results to standard output and throw what main turns into an exit status.
namespace outrigger::cli {

void add_run(CLI::App& program);
void add_plan(CLI::App& program);
void add_report(CLI::App& program);
void add_sweep(CLI::App& program);
void add_generate(CLI::App& program);
void add_evaluate(CLI::App& program);
void add_embed(CLI::App& program);
void add_validate(CLI::App& program);
void add_crd(CLI::App& program);
void add_version(CLI::App& program);

/// Throws CLI::ParseError where `words`, the program's arguments, begin with no command and no
/// option: with the nearest command's name, or with those that there are. Likewise for a command
/// that has commands of its own.
void refuse_unknown_command(const CLI::App& program, std::span<const std::string> words);

/// All of them. A command that went well ends with IoError if its output could not be written.
void add_commands(CLI::App& program);

}  // namespace outrigger::cli
