#include "http/tls_client.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace outrigger::http {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// One request and its answer on a connection.
class TlsStream final : public httplib::Stream {
 public:
  struct Options {
    milliseconds silence;     // bounds each wait for more of the answer
    bool holds_head = false;  // the first write goes out with the second
  };
  TlsStream(int socket, SSL* tls, const Options& options)
      : socket_(socket), tls_(tls), silence_(options.silence), holds_head_(options.holds_head) {}
  // NOLINTBEGIN(modernize-use-override): the library's versions differ in what there is to override
  // What came behind the answer belongs to nobody.
  ~TlsStream() {
    if (begin_ != end_) ::shutdown(socket_, SHUT_RDWR);
  }

  bool is_readable() const {
    return begin_ != end_ || SSL_has_pending(tls_) == 1 || wait(POLLIN, milliseconds(0));
  }
  bool is_writable() const { return wait(POLLOUT, silence_); }
  bool wait_readable() const { return is_readable() || wait(POLLIN, silence_); }
  bool wait_writable() const { return is_writable(); }
  // Since the request began; for a limit that is not set.
  time_t duration() const { return 0; }

  // As recv(2): 0 is the end, -1 an error.
  ssize_t read(char* into, size_t size) {
    if (begin_ == end_) {
      const int more = fill();
      if (more <= 0) return more;
    }
    const size_t count = std::min(size, end_ - begin_);
    std::memcpy(into, buffer_.data() + begin_, count);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* data, size_t size) {
    if (holds_head_) {
      holds_head_ = false;
      head_.assign(data, size);
    } else if (head_.empty()) {
      if (!send(data, size)) return -1;
    } else {
      head_.append(data, size);
      if (!send(head_.data(), head_.size())) return -1;
      head_.clear();
    }
    return static_cast<ssize_t>(size);
  }

  // The library asks only its servers' streams.
  void get_remote_ip_and_port(std::string&, int&) const {}
  void get_local_ip_and_port(std::string&, int&) const {}
  socket_t socket() const { return socket_; }
  // NOLINTEND(modernize-use-override)

 private:
  bool wait(short what, milliseconds time) const {
    const auto deadline = SteadyClock::now() + time;
    while (true) {
      pollfd one{socket_, what, 0};
      const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now());
      const int ready = ::poll(&one, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
      if (ready >= 0 || errno != EINTR) return ready > 0;
    }
  }

  int fill() {
    const auto deadline = SteadyClock::now() + silence_;
    while (true) {
      // What OpenSSL has read ahead shows at no poll.
      const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now());
      if (left.count() < 0 || (SSL_has_pending(tls_) == 0 && !wait(POLLIN, left))) return -1;
      ERR_clear_error();
      const int count = SSL_read(tls_, buffer_.data(), static_cast<int>(buffer_.size()));
      if (count > 0) {
        begin_ = 0;
        end_ = static_cast<size_t>(count);
        return count;
      }
      // Half a record, or one of TLS's own.
      const int error = SSL_get_error(tls_, count);
      if (error != SSL_ERROR_WANT_READ) return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
    }
  }

  bool send(const char* data, size_t size) {
    size_t sent = 0;
    ERR_clear_error();
    return SSL_write_ex(tls_, data, size, &sent) == 1 && sent == size;
  }

  const int socket_;
  SSL* const tls_;
  const milliseconds silence_;
  bool holds_head_;
  std::string head_;
  std::array<char, 8192> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace

TlsClient::TlsClient(const std::string& host, int port) : httplib::SSLClient(host, port) {
  SSL_CTX_set_read_ahead(ssl_context(), 1);
}

bool TlsClient::process_socket(const Socket& socket, Callback callback) {
  const auto silence =
      std::chrono::seconds(read_timeout_sec_) + std::chrono::microseconds(read_timeout_usec_);
  TlsStream stream(socket.sock, socket.ssl, {std::chrono::ceil<milliseconds>(silence), bodies_});
  return callback(stream);
}

bool TlsClient::process_socket(const Socket& socket, SteadyClock::time_point, Callback callback) {
  return process_socket(socket, std::move(callback));
}

}  // namespace outrigger::http
