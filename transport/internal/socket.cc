#include "transport/internal/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "common/error.h"
#include "common/tcp.h"
#include "transport/link.h"

namespace outrigger::transport {
namespace {

using tcp::error_text;
using tcp::ResolveFor;
using tcp::set_option;
using tcp::SocketAddress;
using tcp::wait_for;

/// 0 or the errno of what failed.
int try_listen(const SocketAddress& address, FileDescriptor& result) {
  FileDescriptor fd = tcp::open_socket(address);
  if (!fd) return errno;
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  constexpr int kBacklog = 512;
  const auto* at = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::bind(fd.get(), at, address.size) != 0 || ::listen(fd.get(), kBacklog) != 0) return errno;
  result = std::move(fd);
  return 0;
}

}  // namespace

FileDescriptor listen_on(const Address& address) {
  // IPv6 first: unless a host is named, its socket takes IPv4 too. Where the kernel has none, IPv4
  // is what is left.
  const std::string host = address.host == "::" ? "" : address.host;
  const auto candidates = tcp::resolve(host, address.port, ResolveFor::kListening);
  int failure = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    for (const SocketAddress& candidate : candidates) {
      if (candidate.family != family) continue;
      FileDescriptor fd;
      failure = try_listen(candidate, fd);
      if (failure == 0) return fd;
      if (failure == EADDRINUSE) throw_errno("cannot listen on " + to_string(address), failure);
    }
  }
  throw_errno("cannot listen on " + to_string(address), failure);
}

uint16_t local_port(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    throw_errno("getsockname", errno);
  const bool six = storage.ss_family == AF_INET6;
  return ntohs(six ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

std::string peer_name(int fd) {
  SocketAddress peer;
  peer.size = sizeof peer.storage;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0)
    return "unknown";
  return peer.text();
}

FileDescriptor connect_to(const SocketAddress& address, TimePoint deadline) {
  FileDescriptor fd = tcp::open_socket(address);
  const int failure = fd ? tcp::connect(fd.get(), address, deadline) : errno;
  if (failure != 0) throw IoError("cannot connect: " + error_text(failure));
  tune(fd.get());
  return fd;
}

void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void read_all(int fd, std::span<std::byte> bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (n == 0) throw LinkClosed("the peer ended the connection");
    if (n > 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd, POLLIN, deadline)) throw LinkClosed("no answer in time");
    } else if (errno != EINTR) {
      throw LinkClosed("the connection broke: " + error_text(errno));
    }
  }
}

void write_all(int fd, std::span<const std::byte> bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd, POLLOUT, deadline)) throw LinkClosed("nothing was taken in time");
    } else if (errno != EINTR) {
      throw LinkClosed("the connection broke: " + error_text(errno));
    }
  }
}

}  // namespace outrigger::transport
