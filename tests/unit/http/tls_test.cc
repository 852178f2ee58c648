#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/tcp.h"
#include "http/channel.h"
#include "http/client.h"

namespace outrigger::http {
namespace {

// A key and a certificate for `alt_name` ("DNS:localhost", "IP:127.0.0.1"), signed by `issuer`, or
// by itself, valid for a day.
class SelfSigned {
 public:
  explicit SelfSigned(const std::string& alt_name, const SelfSigned* issuer = nullptr)
      : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509* x = certificate_.get();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 24 * 3600);
    X509_set_pubkey(x, key_.get());
    X509_NAME* name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(alt_name.c_str()), -1, -1, 0);
    X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer->certificate()) : name);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alt_name.c_str());
    X509_add_ext(x, names, -1);
    X509_EXTENSION_free(names);
    X509_EXTENSION* authority =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "CA:TRUE");
    X509_add_ext(x, authority, -1);
    X509_EXTENSION_free(authority);
    X509_sign(x, issuer ? issuer->key() : key_.get(), EVP_sha256());
  }
  X509* certificate() const { return certificate_.get(); }
  EVP_PKEY* key() const { return key_.get(); }
  std::string pem() const {
    return written([this](BIO* to) { PEM_write_bio_X509(to, certificate()); });
  }
  std::string key_pem() const {
    return written([this](BIO* to) {
      PEM_write_bio_PrivateKey(to, key(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

 private:
  template <typename Write>
  static std::string written(const Write& write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
    write(memory.get());
    char* text = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &text);
    return {text, static_cast<size_t>(size)};
  }
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  std::unique_ptr<EVP_PKEY, Free> key_;
  std::unique_ptr<X509, Free> certificate_;
};

class TlsServer {
 public:
  // With `client`, only who shows that certificate is answered.
  explicit TlsServer(const SelfSigned& identity, const SelfSigned* client = nullptr)
      : server_(identity.certificate(), identity.key(), store_of(client)) {
    server_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("secret", "text/plain");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~TlsServer() { server_.stop(); }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }

 private:
  static X509_STORE* store_of(const SelfSigned* client) {
    if (client == nullptr) return nullptr;
    X509_STORE* store = X509_STORE_new();  // the server's context frees it
    X509_STORE_add_cert(store, client->certificate());
    return store;
  }

  httplib::SSLServer server_;
  int port_ = 0;
  std::jthread thread_;
};

TEST(Tls, AServerWhoseAuthorityIsTrustedIsAnswered) {
  const SelfSigned identity("IP:127.0.0.1");
  TlsServer server(identity);
  EXPECT_EQ(
      Client({.base_url = server.url(), .tls = {.authorities = identity.pem()}}).get("/").body,
      "secret");
}

TEST(Tls, AnUnknownAuthorityIsRefused) {
  TlsServer server(SelfSigned("IP:127.0.0.1"));
  EXPECT_THAT([&] { Client({.base_url = server.url()}).get("/"); },
              testing::ThrowsMessage<IoError>(testing::HasSubstr("not trusted")));
}

TEST(Tls, ACertificateForAnotherHostIsRefused) {
  const SelfSigned identity("DNS:elsewhere.example");
  TlsServer server(identity);
  EXPECT_THROW(Client({.base_url = server.url(), .tls = {.authorities = identity.pem()}}).get("/"),
               IoError);
}

TEST(Tls, AuthoritiesMayBeGivenAsText) {
  const SelfSigned identity("IP:127.0.0.1");
  const SelfSigned stranger("IP:127.0.0.2");
  TlsServer server(identity);
  const auto get = [&](const std::string& authorities) {
    return Client({.base_url = server.url(), .tls = {.authorities = authorities}}).get("/").body;
  };
  EXPECT_EQ(get(identity.pem()), "secret");
  EXPECT_EQ(get(stranger.pem() + identity.pem()), "secret");
  EXPECT_THROW(get(stranger.pem()), IoError);
}

TEST(Tls, AnAuthorityThatAnotherHasSignedIsTrustedByItself) {
  const SelfSigned root("DNS:root.example");
  const SelfSigned company("DNS:company.example", &root);
  const SelfSigned cluster("IP:127.0.0.1", &company);
  TlsServer server(cluster);
  const auto get = [&](const SelfSigned& authority) {
    return Client({.base_url = server.url(), .tls = {.authorities = authority.pem()}})
        .get("/")
        .body;
  };
  EXPECT_EQ(get(company), "secret");
  EXPECT_EQ(get(cluster), "secret");
  EXPECT_THROW(get(root), IoError) << "the server does not show who is between";
}

class ListenerThat {
 public:
  // One that takes connections and says nothing, or whose queue is full: nothing is answered at
  // all.
  enum class Does { kStaySilent, kNotAnswer };
  explicit ListenerThat(Does does) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    EXPECT_EQ(::listen(socket_.get(), does == Does::kNotAnswer ? 0 : 8), 0);
    while (does == Does::kNotAnswer) {
      waiting_.push_back(tcp::open_socket(address()));
      const auto soon = system_now() + std::chrono::milliseconds(50);
      if (tcp::connect(waiting_.back().get(), address(), soon) != 0) break;
    }
  }
  tcp::SocketAddress address() const {
    tcp::SocketAddress own{.family = AF_INET, .size = sizeof own.storage};
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.size),
              0);
    return own;
  }

 private:
  FileDescriptor socket_;
  std::vector<FileDescriptor> waiting_;
};

TEST(Channel, AnAddressThatDoesNotAnswerLeavesTimeForTheNext) {
  const SelfSigned identity("IP:127.0.0.1");
  const TlsServer server(identity);
  const ServerAddress wanted = parse_server_url(server.url());
  const ListenerThat full(ListenerThat::Does::kNotAnswer);
  const ListenerThat silent(ListenerThat::Does::kStaySilent);
  const auto good = tcp::resolve(wanted.host, wanted.port, tcp::ResolveFor::kConnecting).front();
  const auto tls = std::make_shared<TlsContext>(TlsOptions{.authorities = identity.pem()});
  const auto connect_to = [&](const std::vector<tcp::SocketAddress>& candidates) {
    Channel(wanted, tls).connect(candidates, std::chrono::milliseconds(1500));
  };
  const TimePoint begin = system_now();
  EXPECT_NO_THROW(connect_to({full.address(), silent.address(), good}));
  EXPECT_LT(system_now() - begin, std::chrono::milliseconds(1500));
  EXPECT_THAT(
      [&] {
        connect_to({silent.address(), full.address()});
      },
      testing::ThrowsMessage<IoError>(
          testing::AllOf(testing::HasSubstr(silent.address().text() + ": no TLS"),
                         testing::HasSubstr(full.address().text() + ": "))));
}

TEST(Tls, VerificationIsOffOnlyWhereThatIsAskedFor) {
  TlsServer server(SelfSigned("DNS:elsewhere.example"));
  EXPECT_EQ(Client({.base_url = server.url(), .tls = {.verify = false}}).get("/").body, "secret");
}

TEST(Tls, OurCertificateIsShownToWhoAsksForIt) {
  const SelfSigned identity("IP:127.0.0.1");
  const SelfSigned ours("DNS:client.example");
  TlsServer server(identity, &ours);
  TlsOptions tls{.authorities = identity.pem()};
  EXPECT_THROW(Client({.base_url = server.url(), .tls = tls}).get("/"), IoError);
  tls.certificate = ours.pem();
  tls.key = ours.key_pem();
  EXPECT_EQ(Client({.base_url = server.url(), .tls = tls}).get("/").body, "secret");
}

TEST(Tls, TextsThatAreNoneAreRefusedBeforeAnythingIsSent) {
  const SelfSigned one("DNS:one.example");
  const SelfSigned two("DNS:two.example");
  const auto make = [](const TlsOptions& tls) { Client({.base_url = "https://h", .tls = tls}); };
  const auto refused = [&](const TlsOptions& tls, const char* why) {
    EXPECT_THAT([&] { make(tls); }, testing::ThrowsMessage<InvalidInput>(testing::HasSubstr(why)));
  };
  refused({.authorities = "none"}, "trusted authorities");
  refused({.authorities = one.pem() + one.pem().substr(0, 100)}, "trusted authorities");
  refused({.certificate = one.pem()}, "given together");
  refused({.certificate = one.pem(), .key = "none"}, "no private key");
  refused({.certificate = one.pem(), .key = two.key_pem()}, "does not belong");
  EXPECT_NO_THROW(make({.certificate = one.pem(), .key = one.key_pem()}));
}

}  // namespace
}  // namespace outrigger::http
