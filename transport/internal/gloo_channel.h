#pragma once

#include <memory>

#include "common/clock.h"
#include "common/file.h"
#include "transport/internal/channel.h"

namespace outrigger::transport {

/// Which half of a Gloo context of two ranks this is.
enum class GlooSide : int { kServer = 0, kWorker = 1 };

/// Makes a two-rank Gloo context with the process at the other end of an authenticated connection,
/// over which the two tell each other where their pairs listen: on the address that the connection
/// itself uses, on a port of their own. Throws LinkClosed when that fails or takes until
/// `deadline`.
std::unique_ptr<Channel> make_gloo_channel(FileDescriptor connection, GlooSide side,
                                           Duration silence_limit, TimePoint deadline);

}  // namespace outrigger::transport
