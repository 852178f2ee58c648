#include "http/client.h"

#include <httplib.h>

#include <mutex>
#include <string_view>

#include "common/error.h"

namespace outrigger::http {
namespace {

using Connection = httplib::Client;

std::unique_ptr<Connection> connect(const ClientOptions& options) {
  auto connection = std::make_unique<Connection>(options.base_url);
  connection->set_connection_timeout(options.timeout);
  connection->set_read_timeout(options.timeout);
  connection->set_write_timeout(options.timeout);
  connection->set_keep_alive(true);
  connection->set_tcp_nodelay(true);
  connection->enable_server_certificate_verification(true);
  if (!options.ca_file.empty()) connection->set_ca_cert_path(options.ca_file);
  return connection;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// scheme://host or scheme://host:port; an IPv6 host in brackets. The library takes anything and
// finds out when it connects.
bool is_server_url(std::string_view url) {
  const bool tls = url.starts_with("https://");
  if (!tls && !url.starts_with("http://")) return false;
  url.remove_prefix(tls ? 8 : 7);
  if (const size_t colon = url.rfind(':'); colon != std::string_view::npos && url.back() != ']') {
    if (!is_port(url.substr(colon + 1))) return false;
    url = url.substr(0, colon);
  }
  const bool bracketed = url.starts_with('[') && url.ends_with(']');
  const std::string_view allowed =
      bracketed ? "[]:.0123456789abcdefABCDEF"
                : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !url.empty() && url.find_first_not_of(allowed) == std::string_view::npos;
}

void check_url(const std::string& url) {
  if (is_server_url(url)) return;
  throw InvalidInput("URL '" + url + "': wanted is http://host:port or https://host:port");
}

std::string describe(httplib::Error error, std::chrono::milliseconds timeout) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
      return "cannot connect";
    case httplib::Error::Read:
      return "the connection was closed, or no answer came within " +
             std::to_string(timeout.count()) + " ms";
    case httplib::Error::SSLConnection:
      return "no TLS connection could be made";
    case httplib::Error::SSLLoadingCerts:
      return "the file of trusted authorities cannot be read";
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not trusted or is not for this host";
    default:
      return httplib::to_string(error);
  }
}

}  // namespace

struct Client::Impl {
  ClientOptions options;
  std::mutex mutex;
  std::vector<std::unique_ptr<Connection>> idle;

  std::unique_ptr<Connection> take() {
    const std::scoped_lock lock(mutex);
    if (idle.empty()) return connect(options);
    auto connection = std::move(idle.back());
    idle.pop_back();
    return connection;
  }

  void give_back(std::unique_ptr<Connection> connection) {
    const std::scoped_lock lock(mutex);
    idle.push_back(std::move(connection));
  }

  Response send(httplib::Request request) {
    for (const auto& [name, value] : options.headers) request.headers.emplace(name, value);
    const std::string what = request.method + " " + options.base_url + request.path;
    const auto deadline = std::chrono::steady_clock::now() + options.timeout;
    Response response;
    std::string refused;
    request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      if (response.body.size() + size > options.max_body) {
        refused = "the answer is larger than " + std::to_string(options.max_body) + " bytes";
      } else if (std::chrono::steady_clock::now() > deadline) {
        refused = "the answer took longer than " + std::to_string(options.timeout.count()) + " ms";
      } else {
        response.body.append(data, size);
      }
      return refused.empty();
    };
    auto connection = take();
    const httplib::Result result = connection->send(request);
    if (!result)
      throw IoError(what + ": " +
                    (refused.empty() ? describe(result.error(), options.timeout) : refused));
    response.status = result->status;
    response.content_type = result->get_header_value("Content-Type");
    give_back(std::move(connection));
    return response;
  }
};

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>()) {
  check_url(options.base_url);
  impl_->options = std::move(options);
}

Client::~Client() = default;

Response Client::get(const std::string& path) {
  httplib::Request request;
  request.method = "GET";
  request.path = path;
  return impl_->send(std::move(request));
}

Response Client::post(const std::string& path, const std::string& body,
                      const std::string& content_type) {
  httplib::Request request;
  request.method = "POST";
  request.path = path;
  request.body = body;
  request.headers.emplace("Content-Type", content_type);
  return impl_->send(std::move(request));
}

}  // namespace outrigger::http
