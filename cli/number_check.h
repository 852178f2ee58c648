#pragma once

namespace CLI {
class Validator;
}

namespace outrigger::cli {

struct NumberRange {
  double least;
  double most;
};

/// For options that take a number: refuses what is outside of the range, and NaN, which CLI11's own
/// checks let through.
CLI::Validator number_from(NumberRange range);

}  // namespace outrigger::cli
