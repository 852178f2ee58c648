#pragma once

#include <string>

namespace CLI {
class Validator;
}

namespace outrigger::cli {

/// Of a process, as the programs of server and worker take them.
inline constexpr int kMostThreads = 4096;

struct NumberRange {
  double least;
  double most;
};

/// For options that take a number: refuses what is outside of the range, and NaN, which CLI11's own
/// checks let through.
CLI::Validator number_from(NumberRange range);

/// For options that take a file or a folder: an empty text is neither, and often stands for a
/// variable of a script that is not set.
CLI::Validator not_empty();

/// For options that name a file to write: refuses a folder that is there, and offers `name` in it.
CLI::Validator no_folder(const std::string& name);

}  // namespace outrigger::cli
