#pragma once

#include <httplib.h>

#include <chrono>
#include <functional>

namespace outrigger::http {

/// The library's client over TLS, but for how bytes pass. The library's own stream asks OpenSSL for
/// each byte of a head by itself and sends head and body as two records, each with questions to the
/// kernel before; here an answer is read in pieces, and a request is one record. Not thread-safe.
class TlsClient : public httplib::SSLClient {
 public:
  TlsClient(const std::string& host, int port);

  /// Whether the next requests have bodies, with which their heads are held together.
  void expect_bodies(bool expected) { bodies_ = expected; }

 private:
  using Callback = std::function<bool(httplib::Stream&)>;
  // The library's virtual function: of its versions until 0.18.3, and of later ones.
  // NOLINTBEGIN(modernize-use-override, performance-unnecessary-value-param)
  bool process_socket(const Socket& socket, Callback callback);
  bool process_socket(const Socket& socket, std::chrono::steady_clock::time_point begin,
                      Callback callback);
  // NOLINTEND(modernize-use-override, performance-unnecessary-value-param)

  bool bodies_ = false;
};

}  // namespace outrigger::http
