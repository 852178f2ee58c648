#include "http/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "common/error.h"

namespace outrigger::http {
namespace {

void set_option(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof value);
}

bool parse_port(std::string_view text, int& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && text.size() <= 5;
}

}  // namespace

ServerAddress parse_server_url(const std::string& url) {
  const InvalidInput refused("URL '" + url + "': wanted is http://host:port or https://host:port");
  std::string_view rest = url;
  ServerAddress address;
  address.tls = rest.starts_with("https://");
  if (!address.tls && !rest.starts_with("http://")) throw refused;
  rest.remove_prefix(address.tls ? 8 : 7);
  address.port = address.tls ? 443 : 80;
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos && rest.back() != ']') {
    if (!parse_port(rest.substr(colon + 1), address.port)) throw refused;
    rest = rest.substr(0, colon);
  }
  const bool bracketed = rest.starts_with('[') && rest.ends_with(']');
  if (bracketed) rest = rest.substr(1, rest.size() - 2);
  const std::string_view allowed =
      bracketed ? ":.0123456789abcdefABCDEF"
                : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (rest.empty() || rest.find_first_not_of(allowed) != std::string_view::npos) throw refused;
  address.host = rest;
  return address;
}

Connection::Connection(const ServerAddress& address, const ClientOptions& options,
                       const TlsMaterial& tls, Use use) {
  if (address.tls) {
    auto library = std::make_unique<httplib::SSLClient>(address.host, address.port);
    tls.identify(library->ssl_context());
    if (use == Use::kWaiting) SSL_CTX_set_mode(library->ssl_context(), SSL_MODE_RELEASE_BUFFERS);
    if (X509_STORE* store = tls.authorities()) {
      library->set_ca_cert_store(store);
      // With neither file nor folder the library would trust the system's authorities as well.
      library->set_ca_cert_path("", "/nonexistent");
    }
    if (!options.ca_file.empty()) library->set_ca_cert_path(options.ca_file);
    library->enable_server_certificate_verification(options.tls.verify);
    library_ = std::move(library);
  } else {
    library_ = std::make_unique<httplib::ClientImpl>(address.host, address.port);
  }
  library_->set_connection_timeout(std::min(options.timeout, options.connect_timeout));
  library_->set_write_timeout(options.timeout);
  library_->set_keep_alive(true);
  library_->set_tcp_nodelay(true);
  library_->set_socket_options([this](socket_t socket) { prepare_socket(socket); });
}

void Connection::prepare_socket(int socket) {
  // A peer that vanished is noticed within 15 + 3 x 5 seconds of silence, or as soon as what we
  // sent has gone unacknowledged for half a minute.
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
  const std::scoped_lock lock(mutex_);
  socket_.reset(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
  if (broken_) ::shutdown(socket, SHUT_RDWR);
}

void Connection::break_off() {
  const std::scoped_lock lock(mutex_);
  broken_ = true;
  // Also ends a connect() in progress, which the library's own stop() does not.
  if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
}

httplib::Result Connection::send(const httplib::Request& request, std::chrono::milliseconds silence,
                                 const std::stop_token& stop) {
  library_->set_read_timeout(silence);
  const std::stop_callback breaking(stop, [this] { break_off(); });
  if (stop.stop_requested()) return {nullptr, httplib::Error::Canceled};
  return library_->send(request);
}

bool Connection::usable() {
  const std::scoped_lock lock(mutex_);
  return !broken_;
}

}  // namespace outrigger::http
