#pragma once

#include <string>

#include "common/file.h"

namespace outrigger::testing_support {

/// Whether this machine has the address ::1.
inline bool has_ipv6() {
  constexpr size_t kMost = size_t{1} << 20;
  const char* addresses = "/proc/net/if_inet6";
  return std::filesystem::exists(addresses) &&
         read_file(addresses, kMost).find(std::string(31, '0') + "1 ") != std::string::npos;
}

}  // namespace outrigger::testing_support
