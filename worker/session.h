#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "transport/link.h"
#include "worker/counters.h"
#include "worker/protocol/protocol.h"
#include "worker/work/agent.h"

namespace outrigger::worker {

/// How a session ended.
enum class SessionEnd : uint8_t {
  kStopped,   // the stop token; leases were given back
  kFinished,  // the server said farewell for good
  kAgain,     // the server said farewell, and to join again
  kRefused,   // the server does not take this worker
  kLinkLost,  // try to join again
};

struct SessionResult {
  SessionEnd end = SessionEnd::kLinkLost;
  std::string reason;
  bool had_work = false;  // at least one lease
};
SessionResult result_of(const feed::Farewell& farewell);

/// Runs an agent over an open link until one of them ends, with one thread more, of that name. On
/// stop it asks for no more leases, says that it leaves and returns within a second or so. Blocks;
/// throws InvalidInput where the server breaks the protocol.
SessionResult run_session(transport::Link& link, Agent& agent, const WireContext& context,
                          SessionCounters& counters, const std::stop_token& stop,
                          const char* receiver_thread = "link-receive");

}  // namespace outrigger::worker
