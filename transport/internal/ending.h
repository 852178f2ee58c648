#pragma once

#include <string>

#include "transport/link.h"

namespace outrigger::transport {

/// Why a link ended.
struct Ending {
  bool by_us = false;
  std::string reason;

  [[noreturn]] void raise() const {
    if (by_us) throw Cancelled("link closed here: " + reason);
    throw LinkClosed(reason);
  }
};

}  // namespace outrigger::transport
