#pragma once

#include <string>

#include "transport/collectives.h"
#include "transport/internal/gloo.h"

namespace outrigger::transport {

/// A Gloo context in which every rank is connected with every other one. Rank 0 collects where each
/// rank's pairs listen and tells the others. Both throw IoError, with the ranks that are missing,
/// when not all have come by the limit, and Cancelled on a stop.
GlooContext host_mesh(Listener& listener, const CollectiveOptions& options);
GlooContext join_mesh(const Address& address, const std::string& token,
                      const CollectiveOptions& options);

}  // namespace outrigger::transport
