#pragma once

#include <functional>
#include <string>
#include <vector>

namespace outrigger::cli {

struct Outcome {
  int status = 0;  ///< what the program would exit with
  std::string out;
  std::string err;
};

/// Runs `outrigger` with the arguments, in this process. What a command throws, but for a status of
/// its own, comes through.
Outcome run_command(std::vector<std::string> arguments);

/// What a command prints that is to end well.
std::string output_of(std::vector<std::string> arguments);

/// What is said as something is refused with InvalidInput; empty: it was not.
std::string refusal_of(const std::function<void()>& doing);

}  // namespace outrigger::cli
