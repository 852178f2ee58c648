#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "http/client.h"
#include "kube/client/config.h"
#include "kube/timer.h"

namespace outrigger::kube {

/// A config made live: the connections to an API server and the token to show, which follow the
/// files they come from. A kubelet renews a pod's token long before it ends and the file changes
/// under us; so may the authorities and a client certificate. Thread-safe.
class Endpoint {
 public:
  /// `options` for every connection; its URL, TLS and files are taken from `config`. Reads the
  /// files: IoError or InvalidInput where one is missing or not what it should be.
  Endpoint(Config config, http::ClientOptions options, const Timer& timer);

  struct Access {
    std::shared_ptr<http::Client> client;
    std::shared_ptr<const std::string> authorization;  // the field that shows the token; or empty
  };
  /// For one request. Looks at the files if that was not done for ten seconds; a file that cannot
  /// be read just now leaves what was there, with a warning.
  Access access();

  /// After 401: looks at the files now. True if the authorization is no longer the `refused` one,
  /// so that another try makes sense.
  bool token_changed(const std::string& refused);

  /// The server's "host:port", for metrics.
  const std::string& host() const { return host_; }

 private:
  struct Texts {
    http::TlsOptions tls;
    std::shared_ptr<const std::string> authorization;
  };
  Texts read() const;
  void refresh();
  void adopt(Texts texts);

  const Config config_;
  const Timer& timer_;
  http::ClientOptions options_;
  std::string host_;
  std::mutex mutex_;
  TimePoint looked_{};
  Texts texts_;
  std::shared_ptr<http::Client> client_;  // requests under way keep the former one
};

}  // namespace outrigger::kube
