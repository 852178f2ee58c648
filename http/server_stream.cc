#include "http/server_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace outrigger::http {
namespace {

// The library ends a head where a line is CR LF alone.
constexpr std::string_view kBlankLine = "\n\r\n";

bool becomes(int socket, short event, std::chrono::milliseconds time) {
  pollfd wanted{.fd = socket, .events = event, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&wanted, 1, static_cast<int>(time.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

bool ServerStream::is_readable() const {
  return begin_ < end_ || becomes(socket_, POLLIN, limits_.silence);
}

bool ServerStream::is_writable() const { return becomes(socket_, POLLOUT, limits_.silence); }

size_t ServerStream::left() const {
  const size_t limit = in_body_ ? limits_.body : kLargestHead;
  return limit - std::min(limit, taken_);
}

void ServerStream::follow_head(const char* bytes, size_t count) {
  for (size_t i = 0; i < count && !in_body_; ++i) {
    of_blank_ = bytes[i] == kBlankLine[of_blank_] ? of_blank_ + 1 : (bytes[i] == '\n' ? 1 : 0);
    if (of_blank_ < kBlankLine.size()) continue;
    in_body_ = true;
    taken_ = count - i - 1;
  }
}

ssize_t ServerStream::read(char* into, size_t size) {
  size = std::min(size, left());
  if (size == 0) return -1;
  if (begin_ == end_) {
    if (!is_readable()) return -1;
    const ssize_t came = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (came <= 0) return came;
    begin_ = 0;
    end_ = static_cast<size_t>(came);
  }
  const size_t count = std::min(size, end_ - begin_);
  std::memcpy(into, buffer_.data() + begin_, count);
  begin_ += count;
  taken_ += count;
  follow_head(into, count);
  return static_cast<ssize_t>(count);
}

ssize_t ServerStream::write(const char* from, size_t size) {
  return is_writable() ? ::send(socket_, from, size, MSG_NOSIGNAL) : -1;
}

// Nobody asks where a request came from.
void ServerStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void ServerStream::get_local_ip_and_port(std::string& ip, int& port) const {
  get_remote_ip_and_port(ip, port);
}

}  // namespace outrigger::http
