#include "http/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "common/error.h"

namespace outrigger::http {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

std::unique_ptr<BIO, FreeBio> open(const std::string& text) {
  return std::unique_ptr<BIO, FreeBio>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::vector<std::unique_ptr<X509, FreeOpenSsl>> read_certificates(const std::string& text,
                                                                  const std::string& what) {
  std::vector<std::unique_ptr<X509, FreeOpenSsl>> certificates;
  const auto bio = open(text);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
  }
  // The end of the text is "no start line"; anything else is a certificate that cannot be read.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (certificates.empty() || !at_end)
    throw InvalidInput(what + ": no certificate in PEM form can be read from it");
  return certificates;
}

// The key of a machine is not encrypted; without this the library would ask on the terminal.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

void FreeOpenSsl::operator()(X509* certificate) const { X509_free(certificate); }
void FreeOpenSsl::operator()(X509_STORE* store) const { X509_STORE_free(store); }
void FreeOpenSsl::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

TlsMaterial::TlsMaterial(const TlsOptions& options) {
  if (!options.authorities.empty()) {
    authorities_.reset(X509_STORE_new());
    for (const auto& certificate : read_certificates(options.authorities, "trusted authorities"))
      X509_STORE_add_cert(authorities_.get(), certificate.get());
  }
  if (options.certificate.empty() != options.key.empty())
    throw InvalidInput("client certificate: certificate and key must be given together");
  if (options.certificate.empty()) return;
  chain_ = read_certificates(options.certificate, "client certificate");
  key_.reset(PEM_read_bio_PrivateKey(open(options.key).get(), nullptr, no_password, nullptr));
  const bool fits = key_ && X509_check_private_key(chain_.front().get(), key_.get()) == 1;
  ERR_clear_error();
  if (!key_) throw InvalidInput("client key: no private key in PEM form can be read from it");
  if (!fits) throw InvalidInput("client key: it does not belong to the client certificate");
}

void TlsMaterial::identify(SSL_CTX* context) const {
  if (chain_.empty()) return;
  ensure(SSL_CTX_use_certificate(context, chain_.front().get()) == 1, "a checked certificate");
  for (size_t i = 1; i < chain_.size(); ++i) SSL_CTX_add1_chain_cert(context, chain_[i].get());
  ensure(SSL_CTX_use_PrivateKey(context, key_.get()) == 1, "a checked key");
}

X509_STORE* TlsMaterial::authorities() const {
  if (authorities_) X509_STORE_up_ref(authorities_.get());
  return authorities_.get();
}

}  // namespace outrigger::http
