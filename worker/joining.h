#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <variant>

#include "api/launch.h"
#include "transport/link.h"
#include "worker/protocol/protocol.h"

namespace outrigger::worker {

/// A link to the server and its first words; a farewell where it sends the worker away.
struct Joined {
  std::unique_ptr<transport::Link> link;
  std::variant<Setup, feed::Farewell> words;
};

/// One try to join the server of `launch`, over what the job wants its links carried by. Throws
/// IoError where the server does not answer, HandshakeRefused, and Cancelled when asked to stop,
/// within a second unless it is dialling.
Joined join(const api::Launch& launch, const std::stop_token& stop);

/// Answers the server. Gives its farewell where it ended the link meanwhile with one; throws
/// LinkClosed where it ended without.
std::optional<feed::Farewell> answer(transport::Link& link, const Hello& hello);

}  // namespace outrigger::worker
