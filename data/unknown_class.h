#pragma once

#include <cstdint>

namespace outrigger::data {

/// What becomes of a class that a data set has, but not the list of classes that its labels follow.
enum class UnknownClass : uint8_t {
  kRefused,
  kAppended,  // its label, and its name, come behind those of the list
};

}  // namespace outrigger::data
