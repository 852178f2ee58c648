#include "http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <thread>

#include "common/error.h"

namespace outrigger::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// The library's own server: one that keeps connections, as real ones do.
class KeepAliveServer {
 public:
  KeepAliveServer() : port_(server_.bind_to_any_port("127.0.0.1")) {
    server_.Get("/port", [](const httplib::Request& request, httplib::Response& response) {
      response.set_content(std::to_string(request.remote_port), "text/plain");
    });
    server_.Get("/header", [](const httplib::Request& request, httplib::Response& response) {
      response.set_content(request.get_header_value("X-Test"), "text/plain");
    });
    server_.Get("/large", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(std::string(1000, 'x'), "text/plain");
    });
    server_.Get("/endless", [](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider(
          "text/plain", [](size_t, httplib::DataSink& sink) { return sink.write("x", 1); });
    });
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~KeepAliveServer() { server_.stop(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  httplib::Server server_;
  int port_;
  std::jthread thread_;
};

TEST(Client, KeepsItsConnection) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  const std::string first = client.get("/port").body;
  EXPECT_EQ(client.get("/port").body, first);
  EXPECT_EQ(client.get("/port").body, first);
}

TEST(Client, SendsItsHeadersWithEveryRequest) {
  KeepAliveServer server;
  Client client({.base_url = server.url(), .headers = {{"X-Test", "value"}}});
  EXPECT_EQ(client.get("/header").body, "value");
}

TEST(Client, AnAnswerOverTheLimitIsAnErrorThatNamesTheLimit) {
  KeepAliveServer server;
  EXPECT_EQ(Client({.base_url = server.url(), .max_body = 1000}).get("/large").body.size(), 1000u);
  Client client({.base_url = server.url(), .max_body = 999});
  EXPECT_THAT([&] { client.get("/large"); },
              ThrowsMessage<IoError>(AllOf(HasSubstr("GET " + server.url() + "/large"),
                                           HasSubstr("larger than 999"))));
}

TEST(Client, AnAnswerWithoutEndIsCutByTheLimit) {
  KeepAliveServer server;
  Client client({.base_url = server.url(), .max_body = 10});
  EXPECT_THROW(client.get("/endless"), IoError);
}

TEST(Client, AServerThatIsNotThereIsNamed) {
  Client client({.base_url = "http://127.0.0.1:1"});
  EXPECT_THAT([&] { client.get("/healthz"); },
              ThrowsMessage<IoError>("GET http://127.0.0.1:1/healthz: cannot connect"));
}

TEST(Client, WhatIsNoUrlIsRefused) {
  for (const char* url : {"", "localhost:80", "ftp://host", "http://", "http://a b",
                          "http://host:port", "http://host:80/path", "http://::1:80"}) {
    EXPECT_THROW(Client({.base_url = url}), InvalidInput) << url;
  }
}

TEST(Client, UrlsOfEveryKindOfHostAreTaken) {
  for (const char* url : {"http://localhost", "https://faces-server.team:29400",
                          "http://10.0.0.1:80", "https://[fe80::1]", "http://[::1]:8080"}) {
    EXPECT_NO_THROW(Client({.base_url = url})) << url;
  }
}

TEST(Headers, AreFoundWhateverTheirCase) {
  const Headers headers{{"Content-Type", "a"}, {"X", "b"}};
  EXPECT_EQ(find_header(headers, "content-type"), "a");
  EXPECT_EQ(find_header(headers, "Content-Typ"), std::nullopt);
}

}  // namespace
}  // namespace outrigger::http
