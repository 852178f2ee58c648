#include "cli/commands.h"

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
}

}  // namespace outrigger::cli
