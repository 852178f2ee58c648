#include "transport/internal/gloo.h"

#include <gloo/transport/tcp/device.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/error.h"
#include "transport/internal/socket.h"
#include "transport/link.h"

namespace outrigger::transport {

std::chrono::milliseconds gloo_timeout(Duration time) {
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(time), std::chrono::milliseconds(1));
}

GlooContext make_gloo_context(const std::string& host, int rank, int size, TimePoint deadline) {
  try {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = host;
    GlooContext result;
    result.device = gloo::transport::tcp::CreateDevice(attributes);
    result.context = result.device->createContext(rank, size);
    // A pair waits five times its context's time-out for its first connection
    // (gloo/transport/tcp/pair.h, waitUntil).
    result.context->setTimeout(gloo_timeout((deadline - SystemClock().now()) / 5));
    return result;
  } catch (const std::exception& failure) {
    throw IoError("Gloo cannot listen on " + host + ": " + failure.what());
  }
}

std::string local_host(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    throw_errno("getsockname", errno);
  std::array<char, NI_MAXHOST> host{};
  const int failure = ::getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host.data(),
                                    host.size(), nullptr, 0, NI_NUMERICHOST);
  if (failure != 0) throw IoError(std::string("no numeric address: ") + gai_strerror(failure));
  const std::string text = host.data();
  constexpr std::string_view kMapped = "::ffff:";
  return text.starts_with(kMapped) ? text.substr(kMapped.size()) : text;
}

void write_blob(int fd, const std::vector<char>& bytes, TimePoint deadline) {
  const auto size = static_cast<uint32_t>(bytes.size());
  write_all(fd, std::as_bytes(std::span(&size, 1)), deadline);
  write_all(fd, std::as_bytes(std::span(bytes)), deadline);
}

std::vector<char> read_blob(int fd, size_t limit, TimePoint deadline) {
  uint32_t size = 0;
  read_all(fd, std::as_writable_bytes(std::span(&size, 1)), deadline);
  if (size > limit) throw LinkClosed("an address of " + std::to_string(size) + " bytes");
  std::vector<char> bytes(size);
  read_all(fd, std::as_writable_bytes(std::span(bytes)), deadline);
  return bytes;
}

}  // namespace outrigger::transport
