#include "transport/internal/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "common/error.h"
#include "transport/link.h"

namespace outrigger::transport {
namespace {

using ResolvedAddresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string error_text(int number) { return std::generic_category().message(number); }

ResolvedAddresses resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int failure = getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                  port.c_str(), &hints, &found);
  if (failure != 0) {
    throw IoError("cannot resolve " + to_string(address) + ": " +
                  (failure == EAI_SYSTEM ? error_text(errno) : gai_strerror(failure)));
  }
  return {found, &freeaddrinfo};
}

FileDescriptor open_socket(const addrinfo& info) {
  return FileDescriptor(
      ::socket(info.ai_family, info.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, info.ai_protocol));
}

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

/// 0 or the errno of what failed.
int try_listen(const addrinfo& info, FileDescriptor& result) {
  FileDescriptor fd = open_socket(info);
  if (!fd) return errno;
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (info.ai_family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  constexpr int kBacklog = 512;
  if (::bind(fd.get(), info.ai_addr, info.ai_addrlen) != 0 || ::listen(fd.get(), kBacklog) != 0)
    return errno;
  result = std::move(fd);
  return 0;
}

int try_connect(const addrinfo& info, TimePoint deadline, FileDescriptor& result) {
  FileDescriptor fd = open_socket(info);
  if (!fd) return errno;
  if (::connect(fd.get(), info.ai_addr, info.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(fd.get(), POLLOUT, deadline)) return ETIMEDOUT;
    int failure = 0;
    socklen_t size = sizeof failure;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0) return errno;
    if (failure != 0) return failure;
  }
  result = std::move(fd);
  return 0;
}

std::string name_of(const sockaddr_storage& storage, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown";
  }
  std::string text = host.data();
  if (constexpr std::string_view kMapped = "::ffff:"; text.starts_with(kMapped))
    text.erase(0, kMapped.size());
  return text.find(':') == std::string::npos ? text + ":" + port.data()
                                             : "[" + text + "]:" + port.data();
}

}  // namespace

FileDescriptor listen_on(const Address& address) {
  const ResolvedAddresses list = resolve(address, AI_PASSIVE);
  // IPv6 first: unless a host is named, its socket takes IPv4 too. Where the kernel has none, IPv4
  // is what is left.
  int failure = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
      if (info->ai_family != family) continue;
      FileDescriptor fd;
      failure = try_listen(*info, fd);
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
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "unknown";
  return name_of(storage, size);
}

FileDescriptor connect_to(const Address& address, TimePoint deadline) {
  const ResolvedAddresses list = resolve(address, AI_ADDRCONFIG);
  std::string failures;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
    FileDescriptor fd;
    const int failure = try_connect(*info, deadline, fd);
    if (failure == 0) {
      tune(fd.get());
      return fd;
    }
    if (!failures.empty()) failures += "; ";
    sockaddr_storage storage{};
    std::copy_n(reinterpret_cast<const char*>(info->ai_addr), info->ai_addrlen,
                reinterpret_cast<char*>(&storage));
    failures += name_of(storage, info->ai_addrlen) + ": " + error_text(failure);
  }
  throw IoError("cannot connect to " + to_string(address) + " (" + failures + ")");
}

void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

bool wait_for(int fd, short events, TimePoint deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - SystemClock().now()).count();
    pollfd poller{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&poller, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw_errno("poll", errno);
    if (left <= 0) return false;
  }
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
