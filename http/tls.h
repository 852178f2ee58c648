#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

#include "http/client.h"

namespace outrigger::http {

struct FreeOpenSsl {
  void operator()(X509* certificate) const;
  void operator()(X509_STORE* store) const;
  void operator()(EVP_PKEY* key) const;
  void operator()(SSL_CTX* context) const;
  void operator()(SSL* session) const;
};
using TlsSession = std::unique_ptr<SSL, FreeOpenSsl>;

/// What all TLS connections of a client share: whom it trusts and what it shows. Immutable;
/// thread-safe.
class TlsContext {
 public:
  /// Throws InvalidInput where a text is not what it should be, or key and certificate do not
  /// belong together.
  explicit TlsContext(const TlsOptions& options);

  /// A session on a connected socket, which has to lead to `host` (a name or an address). Throws
  /// IoError where none comes about, or its certificate is not trusted or for another host.
  TlsSession connect(int socket, const std::string& host) const;

 private:
  void trust(const std::string& authorities);
  void identify(const TlsOptions& options);

  std::unique_ptr<SSL_CTX, FreeOpenSsl> context_;
};

}  // namespace outrigger::http
