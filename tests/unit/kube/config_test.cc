#include "kube/client/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "common/error.h"
#include "common/file.h"
#include "kube/client/endpoint.h"
#include "tests/fakes/fake_timer.h"

namespace outrigger::kube {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* kTwoContexts = R"(
apiVersion: v1
kind: Config
current-context: main
contexts:
- {name: main, context: {cluster: one, user: alice, namespace: team}}
- {name: other, context: {cluster: two, user: bob}}
clusters:
- {name: one, cluster: {server: "https://one:6443", certificate-authority-data: Q0E=}}
- {name: two, cluster: {server: "https://two/k8s/clusters/c-1/", certificate-authority: pki/ca.crt}}
users:
- {name: alice, user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}}
- {name: bob, user: {token: secret, tokenFile: /run/token}}
)";

class ConfigTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    write_file_atomically(folder_.path() / name, text);
    return folder_.path() / name;
  }
  // A kubeconfig whose cluster and user have these fields.
  std::filesystem::path with(const std::string& cluster, const std::string& user) {
    return write("config",
                 "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                 "clusters: [{name: k, cluster: {server: 'https://k', " +
                     cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n");
  }

  TemporaryDirectory folder_;
};

TEST_F(ConfigTest, TheCurrentContextOfAKubeconfigIsRead) {
  const Config config = read_kubeconfig(write("config", kTwoContexts));
  EXPECT_EQ(config.server, "https://one:6443");
  EXPECT_EQ(config.ns, "team");
  EXPECT_EQ(config.authorities.text, "CA");
  EXPECT_EQ(config.certificate.text, "CERT");
  EXPECT_EQ(config.key.text, "KEY");
  EXPECT_TRUE(config.token.empty());
  EXPECT_TRUE(config.verify);
}

TEST_F(ConfigTest, ANamedContextIsReadWithPathsRelativeToTheFile) {
  const Config config = read_kubeconfig(write("config", kTwoContexts), "other");
  EXPECT_EQ(config.server, "https://two/k8s/clusters/c-1/");
  EXPECT_EQ(config.ns, "default");
  EXPECT_EQ(config.authorities.file, folder_.path() / "pki/ca.crt");
  EXPECT_EQ(config.token.file, "/run/token");
}

TEST_F(ConfigTest, PluginsAreRefusedWithWhatToDoInstead) {
  for (const char* plugin : {"exec: {command: aws}", "auth-provider: {name: gcp}"}) {
    const auto path = with("", plugin);
    EXPECT_THAT(
        [&] { read_kubeconfig(path); },
        ThrowsMessage<InvalidInput>(
            AllOf(HasSubstr(path.string()), HasSubstr("plugins are not run"), HasSubstr("token"))))
        << plugin;
  }
}

TEST_F(ConfigTest, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT([&] { read_kubeconfig(with("", "username: admin, password: x")); },
              ThrowsMessage<InvalidInput>(HasSubstr("username: basic authentication")));
  EXPECT_THAT([&] { read_kubeconfig(with("", "as: someone")); },
              ThrowsMessage<InvalidInput>(HasSubstr("as: impersonation")));
  EXPECT_THAT([&] { read_kubeconfig(with("proxy-url: 'http://p'", "")); },
              ThrowsMessage<InvalidInput>(HasSubstr("proxy-url")));
}

TEST_F(ConfigTest, VerificationIsOffOnlyWhereTheFileSaysSo) {
  EXPECT_FALSE(read_kubeconfig(with("insecure-skip-tls-verify: true", "")).verify);
  EXPECT_TRUE(read_kubeconfig(with("insecure-skip-tls-verify: false", "")).verify);
  EXPECT_THROW(read_kubeconfig(with("insecure-skip-tls-verify: maybe", "")), InvalidInput);
}

TEST_F(ConfigTest, WhatIsMissingOrMalformedIsNamed) {
  EXPECT_THAT([&] { read_kubeconfig(write("config", kTwoContexts), "third"); },
              ThrowsMessage<InvalidInput>(HasSubstr("contexts: has no context named 'third'")));
  EXPECT_THAT([&] { read_kubeconfig(write("config", "clusters: []")); },
              ThrowsMessage<InvalidInput>(HasSubstr("current-context")));
  EXPECT_THAT([&] { read_kubeconfig(with("certificate-authority-data: '!'", "")); },
              ThrowsMessage<InvalidInput>(HasSubstr("certificate-authority-data: is not base64")));
  for (const char* text : {"", "[]", "a: [", "contexts: 3\ncurrent-context: c",
                           "contexts: [{}, 4]\ncurrent-context: c"}) {
    EXPECT_THROW(read_kubeconfig(write("config", text)), InvalidInput) << text;
  }
  EXPECT_THROW(read_kubeconfig(folder_.path() / "nothing"), IoError);
}

TEST_F(ConfigTest, APodFindsItsServiceAccount) {
  write("token", "t");
  write("namespace", "team\n");
  const PodEnvironment pod{folder_.path(), "10.0.0.1", "443"};
  const auto config = in_cluster_config(pod);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->ns, "team");
  EXPECT_EQ(config->token.file, folder_.path() / "token");
  EXPECT_EQ(config->authorities.file, folder_.path() / "ca.crt");
  EXPECT_EQ(in_cluster_config({folder_.path(), "fd00::1", "443"})->server, "https://[fd00::1]:443");
}

TEST_F(ConfigTest, WithoutATokenFileThisIsNoPod) {
  EXPECT_EQ(in_cluster_config({folder_.path(), "10.0.0.1", "443"}), std::nullopt);
}

// That shows a token.
std::string field(const std::string& token) { return "Authorization: Bearer " + token + "\r\n"; }

TEST_F(ConfigTest, ATokenIsReadAgainWhenItsFileChanges) {
  fakes::FakeTimer timer;
  const Config config{.server = "http://127.0.0.1:1", .token = {.file = write("token", "one\n")}};
  Endpoint endpoint(config, {}, timer);
  EXPECT_EQ(*endpoint.access().authorization, field("one"));
  write("token", "two\n");
  EXPECT_EQ(*endpoint.access().authorization, field("one"));
  timer.advance(seconds(10));
  EXPECT_EQ(*endpoint.access().authorization, field("two"));
}

TEST_F(ConfigTest, ARefusedTokenIsReadAgainAtOnce) {
  fakes::FakeTimer timer;
  const Config config{.server = "http://127.0.0.1:1", .token = {.file = write("token", "one")}};
  Endpoint endpoint(config, {}, timer);
  EXPECT_FALSE(endpoint.token_changed(field("one")));
  write("token", "two");
  EXPECT_TRUE(endpoint.token_changed(field("one")));
  EXPECT_EQ(*endpoint.access().authorization, field("two"));
}

TEST_F(ConfigTest, AFileThatCannotBeReadJustNowLeavesWhatWasThere) {
  fakes::FakeTimer timer;
  const auto token = write("token", "one");
  Endpoint endpoint({.server = "http://127.0.0.1:1", .token = {.file = token}}, {}, timer);
  std::filesystem::remove(token);
  timer.advance(seconds(10));
  EXPECT_EQ(*endpoint.access().authorization, field("one"));
}

TEST_F(ConfigTest, ANewTokenKeepsTheConnections) {
  fakes::FakeTimer timer;
  const auto token = write("token", "one");
  Endpoint endpoint({.server = "http://127.0.0.1:1", .token = {.file = token}}, {}, timer);
  const auto before = endpoint.access().client;
  write("token", "two");
  timer.advance(seconds(10));
  EXPECT_EQ(endpoint.access().client, before);
}

// A fresh key, and a certificate for it that it signed itself.
struct Identity {
  std::string certificate;
  std::string key;
};

template <typename Write>
std::string as_pem(const Write& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
  write(memory.get());
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(memory.get(), &text));
  return {text, size};
}

Identity make_identity() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> signed_by_it(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(signed_by_it.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(signed_by_it.get()), 24L * 3600);
  X509_set_pubkey(signed_by_it.get(), key.get());
  X509_sign(signed_by_it.get(), key.get(), EVP_sha256());
  return {as_pem([&](BIO* to) { PEM_write_bio_X509(to, signed_by_it.get()); }),
          as_pem([&](BIO* to) {
            PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

TEST_F(ConfigTest, OtherAuthoritiesInTheirFileAreTrustedByOtherConnections) {
  fakes::FakeTimer timer;
  const auto file = write("ca.crt", make_identity().certificate);
  Endpoint endpoint({.server = "https://127.0.0.1:1", .authorities = {.file = file}}, {}, timer);
  const auto before = endpoint.access().client;
  write("ca.crt", make_identity().certificate);
  EXPECT_EQ(endpoint.access().client, before);
  timer.advance(seconds(10));
  const auto after = endpoint.access().client;
  EXPECT_NE(after, before);
  timer.advance(seconds(10));
  EXPECT_EQ(endpoint.access().client, after) << "nothing has changed";
}

TEST_F(ConfigTest, AnotherClientCertificateInItsFilesIsShownByOtherConnections) {
  fakes::FakeTimer timer;
  Identity own = make_identity();
  Endpoint endpoint({.server = "https://127.0.0.1:1",
                     .certificate = {.file = write("tls.crt", own.certificate)},
                     .key = {.file = write("tls.key", own.key)}},
                    {}, timer);
  const auto before = endpoint.access().client;
  own = make_identity();
  write("tls.crt", own.certificate);
  timer.advance(seconds(10));
  EXPECT_EQ(endpoint.access().client, before) << "its key is not there yet";
  write("tls.key", own.key);
  timer.advance(seconds(10));
  EXPECT_NE(endpoint.access().client, before);
}

TEST_F(ConfigTest, BrokenTlsMaterialIsRefusedAtTheStart) {
  fakes::FakeTimer timer;
  Config config{.server = "https://127.0.0.1:1", .authorities = {.text = "no PEM"}};
  EXPECT_THAT([&] { Endpoint(config, {}, timer); },
              ThrowsMessage<InvalidInput>(HasSubstr("trusted authorities")));
  config = {.server = "https://127.0.0.1:1", .certificate = {.text = "x"}};
  EXPECT_THAT([&] { Endpoint(config, {}, timer); },
              ThrowsMessage<InvalidInput>(HasSubstr("must be given together")));
}

TEST(Endpoint, ATokenThatWouldBeginAnotherFieldIsRefused) {
  fakes::FakeTimer timer;
  const Config config{.server = "http://127.0.0.1:1", .token = {.text = "one\r\nX-Other: b"}};
  EXPECT_THROW(Endpoint(config, {}, timer), InvalidInput);
}

TEST(Endpoint, IsWithoutAuthorizationWhereThereIsNoToken) {
  fakes::FakeTimer timer;
  Endpoint endpoint({.server = "https://host:6443/k8s/c-1/"}, {}, timer);
  EXPECT_EQ(*endpoint.access().authorization, "");
  EXPECT_EQ(endpoint.host(), "host:6443");
}

}  // namespace
}  // namespace outrigger::kube
