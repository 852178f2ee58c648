#include "common/tcp.h"

#include <netdb.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

#include "common/error.h"

namespace outrigger::tcp {
namespace {

std::string joined(std::string_view host, std::string_view port) {
  const bool six = host.find(':') != std::string_view::npos;
  return (six ? "[" : "") + std::string(host) + (six ? "]:" : ":") + std::string(port);
}

}  // namespace

std::string error_text(int number) { return std::generic_category().message(number); }

std::string SocketAddress::text() const {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown";
  }
  std::string_view name = host.data();
  if (constexpr std::string_view kMapped = "::ffff:"; name.starts_with(kMapped))
    name.remove_prefix(kMapped.size());
  return joined(name, port.data());
}

std::vector<SocketAddress> resolve(const std::string& host, uint16_t port, ResolveFor use) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string number = std::to_string(port);
  const int passive = use == ResolveFor::kListening ? AI_PASSIVE : 0;
  const auto look_up = [&](int flags) {
    hints.ai_flags = AI_NUMERICSERV | passive | flags;
    return ::getaddrinfo(host.empty() ? nullptr : host.c_str(), number.c_str(), &hints, &found);
  };
  // For what is an address already the kernel need not list the machine's own.
  int failure = look_up(AI_NUMERICHOST);
  if (failure == EAI_NONAME) failure = look_up(passive != 0 ? 0 : AI_ADDRCONFIG);
  if (failure != 0) {
    throw IoError("cannot resolve " + joined(host, number) + ": " +
                  (failure == EAI_SYSTEM ? error_text(errno) : gai_strerror(failure)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    address.family = info->ai_family;
    address.size = info->ai_addrlen;
    std::copy_n(reinterpret_cast<const char*>(info->ai_addr), info->ai_addrlen,
                reinterpret_cast<char*>(&address.storage));
  }
  return addresses;
}

FileDescriptor open_socket(const SocketAddress& address) {
  return FileDescriptor(
      ::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
}

int connect(int socket, const SocketAddress& address, TimePoint deadline) {
  const auto* to = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(socket, to, address.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int failure = 0;
  socklen_t size = sizeof failure;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) return errno;
  return failure;
}

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

bool wait_for(int fd, short events, TimePoint deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system_now()).count();
    pollfd poller{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&poller, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw_errno("poll", errno);
    if (left <= 0) return false;
  }
}

}  // namespace outrigger::tcp
