#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/file.h"

/// Resolving names and connecting over TCP, with deadlines.
namespace outrigger::tcp {

/// One of the addresses that a name and a port stand for.
struct SocketAddress {
  int family = AF_UNSPEC;
  sockaddr_storage storage = {};
  socklen_t size = 0;

  /// "10.0.0.7:41822", "[::1]:80".
  std::string text() const;
};

enum class ResolveFor : uint8_t { kConnecting, kListening };

/// The addresses of a host, best first; what listens may name none. Throws IoError with host, port
/// and cause. The system's resolver has time-outs of its own.
std::vector<SocketAddress> resolve(const std::string& host, uint16_t port, ResolveFor use);

/// Non-blocking, and closed on exec. False with errno where there is none.
FileDescriptor open_socket(const SocketAddress& address);

/// Connects a non-blocking socket; 0, or the errno of what failed (ETIMEDOUT at the deadline).
/// Another thread's shutdown() of the socket ends it.
int connect(int socket, const SocketAddress& address, TimePoint deadline);

void set_option(int socket, int level, int option, int value);

/// Waits until `fd` is ready for `events` (poll's); false at the deadline. Errors and hang-ups
/// count as ready.
bool wait_for(int fd, short events, TimePoint deadline);

/// What an errno means.
std::string error_text(int number);

}  // namespace outrigger::tcp
