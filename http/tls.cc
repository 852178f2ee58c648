#include "http/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

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

void expect_host(SSL* session, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1) return;
  ERR_clear_error();
  SSL_set1_host(session, host.c_str());
  SSL_set_tlsext_host_name(session, host.c_str());  // which of its certificates it shall show
}

std::string last_error() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* text = error == 0 ? nullptr : ERR_reason_error_string(error);
  return text == nullptr ? "the connection was closed, or no answer came" : text;
}

}  // namespace

void FreeOpenSsl::operator()(X509* certificate) const { X509_free(certificate); }
void FreeOpenSsl::operator()(X509_STORE* store) const { X509_STORE_free(store); }
void FreeOpenSsl::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
void FreeOpenSsl::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
void FreeOpenSsl::operator()(SSL* session) const { SSL_free(session); }

TlsContext::TlsContext(const TlsOptions& options) : context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_read_ahead(context_.get(), 1);  // a record's head and body by one read
  SSL_CTX_set_verify(context_.get(), options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  trust(options.authorities);
  identify(options);
}

void TlsContext::trust(const std::string& authorities) {
  if (authorities.empty()) {
    SSL_CTX_set_default_verify_paths(context_.get());
    return;
  }
  // What is given is trusted, also where another authority has signed it: a cluster's may be one of
  // a company's.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context_.get()), X509_V_FLAG_PARTIAL_CHAIN);
  X509_STORE* store = SSL_CTX_get_cert_store(context_.get());
  for (const auto& certificate : read_certificates(authorities, "trusted authorities"))
    X509_STORE_add_cert(store, certificate.get());
}

void TlsContext::identify(const TlsOptions& options) {
  if (options.certificate.empty() != options.key.empty())
    throw InvalidInput("client certificate: certificate and key must be given together");
  if (options.certificate.empty()) return;
  const auto chain = read_certificates(options.certificate, "client certificate");
  const std::unique_ptr<EVP_PKEY, FreeOpenSsl> key(
      PEM_read_bio_PrivateKey(open(options.key).get(), nullptr, no_password, nullptr));
  const bool fits = key && X509_check_private_key(chain.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (!key) throw InvalidInput("client key: no private key in PEM form can be read from it");
  if (!fits) throw InvalidInput("client key: it does not belong to the client certificate");
  ensure(SSL_CTX_use_certificate(context_.get(), chain.front().get()) == 1,
         "a checked certificate");
  for (size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context_.get(), chain[i].get());
  ensure(SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1, "a checked key");
}

TlsSession TlsContext::connect(int socket, const std::string& host) const {
  TlsSession session(SSL_new(context_.get()));
  expect_host(session.get(), host);
  SSL_set_fd(session.get(), socket);
  ERR_clear_error();
  if (SSL_connect(session.get()) == 1) return session;
  if (const long verdict = SSL_get_verify_result(session.get()); verdict != X509_V_OK) {
    ERR_clear_error();
    throw IoError("the server's certificate is not trusted or is not for this host (" +
                  std::string(X509_verify_cert_error_string(verdict)) + ")");
  }
  throw IoError("no TLS connection could be made: " + last_error());
}

}  // namespace outrigger::http
