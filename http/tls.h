#pragma once

#include <openssl/types.h>

#include <memory>
#include <vector>

#include "http/client.h"

namespace outrigger::http {

struct FreeOpenSsl {
  void operator()(X509* certificate) const;
  void operator()(X509_STORE* store) const;
  void operator()(EVP_PKEY* key) const;
};

/// TlsOptions, read once for all connections of a client. Immutable after that; thread-safe.
class TlsMaterial {
 public:
  /// Throws InvalidInput where a text is not what it should be, or key and certificate do not
  /// belong together.
  explicit TlsMaterial(const TlsOptions& options);

  /// Shows our certificate, if there is one, on connections made from `context`.
  void identify(SSL_CTX* context) const;
  /// The authorities as a store of which the caller owns one reference; null: the system's.
  X509_STORE* authorities() const;

 private:
  std::unique_ptr<X509_STORE, FreeOpenSsl> authorities_;
  std::vector<std::unique_ptr<X509, FreeOpenSsl>> chain_;  // ours first
  std::unique_ptr<EVP_PKEY, FreeOpenSsl> key_;
};

}  // namespace outrigger::http
