#pragma once

#include <stdexcept>
#include <string>

namespace outrigger {

/// The base of every exception this project throws. The text says what was tried, on what, and what
/// came back.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user's input is at fault: a job file, a flag, an image, a weights file. Trying again does
/// not help.
class InvalidInput : public Error {
 public:
  using Error::Error;
};

/// The outside world failed: a file, a socket, a disk. Trying again may help.
class IoError : public Error {
 public:
  using Error::Error;
};

/// The operation was ended on purpose (stop requested, link closed by us).
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// Throws IoError with the text of `error_number` (an errno value) behind `what`.
[[noreturn]] void throw_errno(const std::string& what, int error_number);

/// Aborts: one of our own invariants does not hold. `what` is printed with the caller's place.
[[noreturn]] void impossible(const std::string& what, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE());

/// Aborts unless `condition` holds; for our own invariants, never for input.
inline void ensure(bool condition, const char* what, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  if (!condition) impossible(what, file, line);
}

}  // namespace outrigger
