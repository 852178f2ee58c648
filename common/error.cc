#include "common/error.h"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace outrigger {

void throw_errno(const std::string& what, int error_number) {
  throw IoError(what + ": " + std::generic_category().message(error_number));
}

void impossible(const std::string& what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: impossible state: %s\n", file, line, what.c_str());
  std::abort();
}

}  // namespace outrigger
