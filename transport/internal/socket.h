#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/clock.h"
#include "common/file.h"
#include "common/tcp.h"
#include "transport/address.h"
#include "transport/internal/channel.h"

/// TCP sockets with deadlines. All sockets are non-blocking and close on exec.
namespace outrigger::transport {

/// Listens on `address` (empty host: every interface, IPv4 and IPv6; port 0: any free port). Throws
/// IoError with the address, also when the port is in use.
FileDescriptor listen_on(const Address& address);

/// The port that a bound socket has.
uint16_t local_port(int fd);

/// "10.0.0.7:41822" of the other side; "unknown" once it is gone.
std::string peer_name(int fd);

/// A connected and tuned socket. Throws IoError with the cause.
FileDescriptor connect_to(const tcp::SocketAddress& address, TimePoint deadline);

/// No delay for small packets, and keepalive as a second net under the heartbeats.
void tune(int fd);

/// Reads or writes all of it; throws LinkClosed at the deadline or when the peer ends.
void read_all(int fd, std::span<std::byte> bytes, TimePoint deadline);
void write_all(int fd, std::span<const std::byte> bytes, TimePoint deadline);

/// A connected, authenticated socket as a channel.
std::unique_ptr<Channel> make_socket_channel(FileDescriptor fd, Duration silence_limit);

}  // namespace outrigger::transport
