#pragma once

#include <memory>
#include <utility>

#include "transport/link.h"

namespace outrigger::transport {

/// Two ends of a link inside one process, for the server's own local worker and for tests. No
/// thread, no copy: owned payloads arrive as they are (borrowed ones are copied). The receiver's
/// window_bytes is what bounds send; heartbeats and max_queued_bytes have no meaning here.
std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> make_memory_links(
    const LinkOptions& options = {});

}  // namespace outrigger::transport
