#include "http/channel.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>

#include "common/error.h"
#include "common/tcp.h"

namespace outrigger::http {
namespace {

using std::chrono::milliseconds;

// A peer that vanished is noticed within 15 + 3 x 5 seconds of silence, or as soon as what we
// sent has gone unacknowledged for half a minute.
void tune(int socket) {
  tcp::set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  tcp::set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  tcp::set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  tcp::set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  tcp::set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  tcp::set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

// From here on SO_RCVTIMEO and SO_SNDTIMEO bound each call: one call to the kernel instead of two.
void make_blocking(int socket) {
  const int flags = ::fcntl(socket, F_GETFL);
  if (flags < 0 || ::fcntl(socket, F_SETFL, flags & ~O_NONBLOCK) != 0) throw_errno("fcntl", errno);
}

bool is_timeout(int failure) { return failure == EAGAIN || failure == EWOULDBLOCK; }

// What went wrong with a session, as an errno: of the call below it, or ECONNRESET where the peer
// went without a farewell, or EPROTO.
int failure_of(SSL* session, int result) {
  const int failure = errno;
  switch (SSL_get_error(session, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return failure == EINTR ? EINTR : EAGAIN;
    case SSL_ERROR_SYSCALL:
      return failure == 0 ? ECONNRESET : failure;
    default:
      return ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? ECONNRESET
                                                                                    : EPROTO;
  }
}

std::string text_of(int failure) {
  if (failure == EPIPE || failure == ECONNRESET) return "the connection was closed";
  const char* tls = failure == EPROTO ? ERR_reason_error_string(ERR_peek_error()) : nullptr;
  return "the connection broke: " + (tls != nullptr ? tls : tcp::error_text(failure));
}

}  // namespace

Channel::Channel(ServerAddress address, std::shared_ptr<const TlsContext> tls)
    : address_(std::move(address)), tls_(std::move(tls)) {}

void Channel::connect(milliseconds time) {
  connect(tcp::resolve(address_.host, address_.port, tcp::ResolveFor::kConnecting), time);
}

void Channel::connect(std::span<const tcp::SocketAddress> candidates, milliseconds time) {
  const TimePoint deadline = system_now() + time;
  std::string failures;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const TimePoint now = system_now();
    try {
      const auto others = static_cast<int64_t>(candidates.size() - i);
      return try_address(candidates[i], now + (deadline - now) / others);
    } catch (const IoError& error) {
      failures += (failures.empty() ? "" : "; ") + candidates[i].text() + ": " + error.what();
    }
    const std::scoped_lock lock(mutex_);
    if (broken_) break;
  }
  throw IoError("cannot connect (" + failures + ")");
}

void Channel::try_address(const tcp::SocketAddress& address, TimePoint deadline) {
  FileDescriptor socket = tcp::open_socket(address);
  int failure = socket ? 0 : errno;
  adopt(std::move(socket));
  if (failure == 0) failure = tcp::connect(socket_.get(), address, deadline);
  if (failure != 0) throw IoError(tcp::error_text(failure));
  tune(socket_.get());
  make_blocking(socket_.get());
  if (!tls_) return;
  const auto left = std::chrono::ceil<milliseconds>(deadline - system_now());
  limit(SO_RCVTIMEO, std::max(left, milliseconds(1)), read_limit_);
  limit(SO_SNDTIMEO, std::max(left, milliseconds(1)), write_limit_);
  session_ = tls_->connect(socket_.get(), address_.host);
}

void Channel::adopt(FileDescriptor socket) {
  const std::scoped_lock lock(mutex_);
  if (broken_) throw IoError("broken off");
  socket_ = std::move(socket);
  read_limit_ = write_limit_ = milliseconds(0);  // they were the former one's
}

void Channel::break_off() {
  const std::scoped_lock lock(mutex_);
  broken_ = true;
  if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
}

void Channel::limit(int option, milliseconds time, milliseconds& now) const {
  if (time == now) return;
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timeval value{.tv_sec = whole.count(),
                      .tv_usec = std::chrono::microseconds(time - whole).count()};
  if (::setsockopt(socket_.get(), SOL_SOCKET, option, &value, sizeof value) != 0)
    throw_errno("setsockopt", errno);
  now = time;
}

void Channel::write(std::string_view bytes, milliseconds silence) {
  limit(SO_SNDTIMEO, silence, write_limit_);
  while (!bytes.empty()) {
    size_t sent = 0;
    int failure = 0;
    if (session_) {
      ERR_clear_error();
      const int result = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &sent);
      if (result != 1) failure = failure_of(session_.get(), result);
    } else {
      const ssize_t result = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      result < 0 ? failure = errno : sent = static_cast<size_t>(result);
    }
    if (is_timeout(failure))
      throw IoError("nothing was taken within " + std::to_string(silence.count()) + " ms");
    if (failure != 0 && failure != EINTR) throw IoError(text_of(failure));
    bytes.remove_prefix(sent);
  }
}

size_t Channel::read(std::span<char> into, milliseconds silence) {
  limit(SO_RCVTIMEO, silence, read_limit_);
  while (true) {
    int failure = 0;
    if (session_) {
      size_t count = 0;
      ERR_clear_error();
      errno = 0;
      const int result = SSL_read_ex(session_.get(), into.data(), into.size(), &count);
      if (result == 1) return count;
      if (SSL_get_shutdown(session_.get()) & SSL_RECEIVED_SHUTDOWN) return 0;
      failure = failure_of(session_.get(), result);
    } else {
      const ssize_t result = ::recv(socket_.get(), into.data(), into.size(), 0);
      if (result >= 0) return static_cast<size_t>(result);
      failure = errno;
    }
    if (is_timeout(failure))
      throw IoError("no answer came within " + std::to_string(silence.count()) + " ms");
    if (failure != EINTR) throw IoError(text_of(failure));
  }
}

bool Channel::idle() const {
  if (!socket_ || (session_ && SSL_has_pending(session_.get()) == 1)) return false;
  char byte = 0;
  return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && is_timeout(errno);
}

void Channel::keep_no_buffers() {
  if (session_) SSL_set_mode(session_.get(), SSL_MODE_RELEASE_BUFFERS);
}

}  // namespace outrigger::http
