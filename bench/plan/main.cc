// How good the plans are that the planner finds, in virtual time: drawn jobs and clusters are run
// under the planner and, plan by plan, under every legal plan held fixed; figures are printed
// beside their targets. Exit status 3 where one is missed, as bench/figures.py has it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "bench/plan/figures.h"
#include "bench/plan/scenarios.h"
#include "bench/plan/situations.h"

namespace outrigger::training {
namespace {

const std::vector<std::string> kParts{"drawn", "changes", "costs", "card", "sizes"};

struct Asked {
  std::vector<std::string> parts = kParts;
  int scenarios = 1000;
  int first = 0;
  std::optional<int> only;
  std::string best;
};

void add_options(CLI::App& program, Asked& asked) {
  constexpr int kMost = 1'000'000;
  program.add_option("--scenarios", asked.scenarios, "so many drawn jobs and clusters")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  program.add_option("--first", asked.first, "from this number on; 0 to 999 were tuned with")
      ->check(CLI::Range(0, kMost))
      ->capture_default_str();
  program.add_option("--best", asked.best,
                     "file where their best plans are kept for other runs of the same simulator");
  program.add_option("--part", asked.parts, "only this part, or these")
      ->check(CLI::IsMember(kParts))
      ->delimiter(',');
  program.add_option("--only", asked.only, "shows every plan of one of them, and nothing else")
      ->check(CLI::Range(0, kMost));
}

int run(const Asked& asked) {
  constexpr int kMissed = 3;
  if (asked.only) {
    show_scenario(*asked.only);
    return 0;
  }
  const auto wanted = [&](const char* part) {
    return std::ranges::find(asked.parts, part) != asked.parts.end();
  };
  if (wanted("drawn")) {
    BestPlans best_plans(asked.best);
    run_scenarios(asked.first, asked.scenarios, best_plans);
  }
  if (wanted("changes")) run_changes();
  if (wanted("costs")) run_costs();
  if (wanted("card")) run_narrow_card();
  if (wanted("sizes")) run_sizes(asked.scenarios >= 100);
  return any_missed() ? kMissed : 0;
}

}  // namespace
}  // namespace outrigger::training

int main(int count, char** arguments) {
  CLI::App program("How good the plans are that the planner finds, in virtual time");
  outrigger::training::Asked asked;
  outrigger::training::add_options(program, asked);
  try {
    program.parse(count, arguments);
    return outrigger::training::run(asked);
  } catch (const CLI::ParseError& error) {
    constexpr int kBadUsage = 2;
    return program.exit(error) == 0 ? 0 : kBadUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "outrigger-bench-plan: %s\n", error.what());
    return 1;
  }
}
