#pragma once

#include <string>

#include "common/clock.h"
#include "common/file.h"
#include "transport/address.h"
#include "transport/handshake.h"

namespace outrigger::transport {

/// Connects and does the client's half of the handshake; see dial.
FileDescriptor dial_and_prove(const Address& address, const std::string& token, Purpose purpose,
                              TimePoint deadline);

}  // namespace outrigger::transport
