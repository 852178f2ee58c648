#pragma once

#include <httplib.h>

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "common/file.h"
#include "http/client.h"
#include "http/tls.h"

namespace outrigger::http {

/// Where a client connects to.
struct ServerAddress {
  bool tls = false;
  std::string host;  // without brackets
  int port = 80;
};

/// Throws InvalidInput unless `url` is scheme://host or scheme://host:port; an IPv6 host is in
/// brackets.
ServerAddress parse_server_url(const std::string& url);

/// One connection of the library, which a stop request can break from another thread at any moment,
/// also while it is being made.
class Connection {
 public:
  /// What it is for. One that waits keeps no buffers of records meanwhile, 34 KiB each; one for
  /// requests, which come one after the other, would make them anew for each.
  enum class Use : uint8_t { kRequests, kWaiting };

  Connection(const ServerAddress& address, const ClientOptions& options, const TlsMaterial& tls,
             Use use);

  /// Sends and receives. `silence` bounds each read.
  httplib::Result send(const httplib::Request& request, std::chrono::milliseconds silence,
                       const std::stop_token& stop);
  /// Whether another request may be sent on it.
  bool usable();

 private:
  void prepare_socket(int socket);
  void break_off();

  std::unique_ptr<httplib::ClientImpl> library_;
  std::mutex mutex_;
  // A second descriptor of the library's socket: it stays ours when the library closes its own, so
  // that shutting it down can never hit a stranger who got the same number.
  FileDescriptor socket_;
  bool broken_ = false;
};

}  // namespace outrigger::http
