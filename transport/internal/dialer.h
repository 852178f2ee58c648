#pragma once

#include <string>

#include "common/clock.h"
#include "common/file.h"
#include "transport/address.h"
#include "transport/handshake.h"

namespace outrigger::transport {

/// Connects and does the client's half of the handshake within `limit`, which begins once the name
/// is resolved; see dial. Tries the name's addresses in their order, each with its share of the
/// time that is left.
FileDescriptor dial_and_prove(const Address& address, const std::string& token, Purpose purpose,
                              Duration limit);

}  // namespace outrigger::transport
