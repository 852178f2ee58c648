// How good the plans are that the planner finds, in virtual time: drawn jobs and clusters are run
// under the planner and, plan by plan, under every legal plan held fixed; figures are printed
// beside their targets. Exit status 3 where one is missed, as bench/figures.py has it.
#include <charconv>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>

#include "bench/plan/figures.h"
#include "bench/plan/scenarios.h"
#include "bench/plan/situations.h"

namespace outrigger::training {
namespace {

constexpr const char* kUsage =
    "usage: outrigger-bench-plan [--scenarios N] [--first N] [--best FILE] | --only N\n"
    "  --scenarios N  so many drawn jobs and clusters, by default 1,000\n"
    "  --first N      from this number on; what was tuned with are 0 to 999\n"
    "  --best FILE    their best plans, kept there for other runs of the same simulator\n"
    "  --only N       shows every plan of one of them\n";

struct Asked {
  int scenarios = 1000;
  int first = 0;
  std::optional<int> only;
  std::string best;
};

std::optional<int> read_number(const std::string& text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<Asked> read_arguments(std::span<char*> arguments) {
  Asked asked;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string option = arguments[i];
    const std::string value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    const auto number = read_number(value);
    if (option == "--best" && !value.empty()) {
      asked.best = value;
    } else if (option == "--only" && number) {
      asked.only = number;
    } else if (option == "--scenarios" && number) {
      asked.scenarios = *number;
    } else if (option == "--first" && number) {
      asked.first = *number;
    } else {
      return std::nullopt;
    }
  }
  return asked;
}

int run(const Asked& asked) {
  constexpr int kMissed = 3;
  if (asked.only) {
    show_scenario(*asked.only);
    return 0;
  }
  BestPlans best_plans(asked.best);
  run_scenarios(asked.first, asked.scenarios, best_plans);
  run_situations(asked.scenarios >= 100);
  return any_missed() ? kMissed : 0;
}

}  // namespace
}  // namespace outrigger::training

int main(int count, char** arguments) {
  const auto asked =
      outrigger::training::read_arguments({arguments + 1, static_cast<size_t>(count - 1)});
  if (!asked) {
    std::fputs(outrigger::training::kUsage, stderr);
    return 2;
  }
  try {
    return outrigger::training::run(*asked);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "outrigger-bench-plan: %s\n", error.what());
    return 1;
  }
}
