#include "http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/file.h"
#include "http/client.h"
#include "tests/support/ipv6.h"

namespace outrigger::http {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

ServerOptions local() {
  ServerOptions options;
  options.address = "127.0.0.1";
  return options;
}

Client client_of(const Server& server) {
  return Client({.base_url = "http://127.0.0.1:" + std::to_string(server.port())});
}

FileDescriptor connect_to(int port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  return socket;
}

TEST(Server, OnAllAddressesAnswersBothFamilies) {
  Server server({.address = "::"});
  server.route("GET", "/", [](const Request&) { return Response{200, "here"}; });
  server.start();
  EXPECT_EQ(client_of(server).get("/").body, "here");
  if (!testing_support::has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  Client six({.base_url = "http://[::1]:" + std::to_string(server.port())});
  EXPECT_EQ(six.get("/").body, "here");
}

TEST(Server, AnswersItsRoutes) {
  Server server(local());
  server.route("GET", "/hello", [](const Request& request) {
    return Response{200, "hello " + request.query.at("name"), "text/x-greeting"};
  });
  server.route("POST", "/echo", [](const Request& request) { return Response{201, request.body}; });
  server.start();
  Client client = client_of(server);

  const Response hello = client.get("/hello?name=J%C3%BCrg");
  EXPECT_EQ(hello.status, 200);
  EXPECT_EQ(hello.body, "hello J\xc3\xbcrg");
  EXPECT_EQ(hello.content_type, "text/x-greeting");
  const Response echo = client.post("/echo", "{\"a\": 1}");
  EXPECT_EQ(echo.status, 201);
  EXPECT_EQ(echo.body, "{\"a\": 1}");
}

TEST(Server, RefusesUnknownPagesAndWrongMethods) {
  Server server(local());
  server.route("POST", "/stop", [](const Request&) { return Response{}; });
  server.start();
  Client client = client_of(server);
  EXPECT_EQ(client.get("/nothing").status, 404);
  EXPECT_EQ(client.get("/stop/").status, 404);
  EXPECT_EQ(client.get("/stop").status, 405);
}

TEST(Server, AHandlersExceptionIsAnAnswer) {
  Server server(local());
  server.route("GET", "/input",
               [](const Request&) -> Response { throw InvalidInput("plan 'x': no such plan"); });
  server.route("GET", "/bug",
               [](const Request&) -> Response { throw std::runtime_error("broken"); });
  server.start();
  Client client = client_of(server);
  EXPECT_EQ(client.get("/input").status, 400);
  EXPECT_THAT(client.get("/input").body, HasSubstr("no such plan"));
  EXPECT_EQ(client.get("/bug").status, 500);
}

TEST(Server, APortInUseIsNamed) {
  const Server first(local());
  ServerOptions options = local();
  options.port = first.port();
  EXPECT_THAT([&] { Server second(options); },
              ThrowsMessage<IoError>("listening on 127.0.0.1:" + std::to_string(first.port()) +
                                     ": Address already in use"));
}

TEST(Server, AnAddressOfAnotherMachineIsRefused) {
  ServerOptions options = local();
  options.address = "192.0.2.1";  // TEST-NET-1 of RFC 5737: nobody has it
  EXPECT_THAT([&] { Server server(options); },
              ThrowsMessage<IoError>(HasSubstr("listening on 192.0.2.1:0")));
}

TEST(Server, APortIsFreeAgainAfterItsServer) {
  ServerOptions options = local();
  {
    Server server(options);
    server.start();
    client_of(server).get("/");
    options.port = server.port();
  }
  Server again(options);
  again.start();
  EXPECT_EQ(client_of(again).get("/").status, 404);
}

// What comes back for these bytes, until the server closes the connection.
std::string answer_to(const Server& server, std::string_view request) {
  const FileDescriptor socket = connect_to(server.port());
  while (!request.empty()) {
    const ssize_t sent = ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // it wants no more
    request.remove_prefix(static_cast<size_t>(sent));
  }
  std::string answer;
  char some[256];
  for (ssize_t got = 0; (got = ::recv(socket.get(), some, sizeof some, 0)) > 0;)
    answer.append(some, static_cast<size_t>(got));
  return answer;
}

// What `curl -X POST` sends.
TEST(Server, ARequestWithoutALengthHasNoBody) {
  ServerOptions options = local();
  options.io_timeout = std::chrono::seconds(60);
  Server server(options);
  server.route("POST", "/stop", [](const Request& request) {
    return Response{202, "body of " + std::to_string(request.body.size())};
  });
  server.start();
  const std::string answer = answer_to(server, "POST /stop HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 202"));
  EXPECT_THAT(answer, testing::EndsWith("body of 0"));
  EXPECT_THAT(answer_to(server, "PUT /stop HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              testing::StartsWith("HTTP/1.1 405"));
}

TEST(Server, WhatHasNoBoundIsRefusedBeforeItIsRead) {
  ServerOptions options = local();
  options.io_timeout = std::chrono::seconds(60);
  Server server(options);
  server.route("POST", "/", [](const Request&) { return Response{}; });
  server.start();
  const auto status_of = [&](const std::string& method, const std::string& field) {
    return answer_to(server, method + " / HTTP/1.1\r\nHost: localhost\r\n" + field + "\r\n\r\n")
        .substr(0, 12);
  };
  for (const char* method : {"POST", "PUT", "GET", "DELETE"})
    EXPECT_EQ(status_of(method, "Transfer-Encoding: chunked"), "HTTP/1.1 411") << method;
  EXPECT_EQ(status_of("POST", "Content-Length: 9\r\nContent-Encoding: gzip"), "HTTP/1.1 415");
  EXPECT_EQ(status_of("POST", "Content-Length: 9\r\nContent-Type: multipart/form-data; boundary=x"),
            "HTTP/1.1 415");
  EXPECT_EQ(status_of("GET", "Range: bytes=0-1,0-1"), "HTTP/1.1 416");
}

// How much memory this process had at most, in KiB.
long peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Server, AHeadOfManyMegabytesIsCutOff) {
  Server server(local());
  server.start();
  std::string lines = "GET / HTTP/1.1\r\n";
  while (lines.size() < 24 << 20) lines += "a:b\r\n";
  const std::string one_line = "GET / HTTP/1.1\r\na: " + std::string(24 << 20, 'x');
  const std::string target = "GET /" + std::string(24 << 20, 'x');
  const long before = peak_memory();
  for (const std::string& head : {std::cref(lines), std::cref(one_line), std::cref(target)})
    EXPECT_THAT(answer_to(server, head), testing::Not(testing::HasSubstr("HTTP/1.1 404")));
  // Of the test's own there is nothing more; each alone cost the server all of its bytes and more.
  EXPECT_LT(peak_memory() - before, 12 << 10);
  EXPECT_EQ(client_of(server).get("/").status, 404);
}

TEST(Server, AHeadOfCommonSizeIsTaken) {
  Server server(local());
  server.route("GET", "/", [](const Request& request) {
    return Response{200, std::to_string(find_header(request.headers, "Cookie")->size())};
  });
  server.start();
  Client client(
      {.base_url = "http://127.0.0.1:" + std::to_string(server.port()),
       .headers = {{"Cookie", std::string(8000, 'x')}, {"Other", std::string(8000, 'y')}}});
  EXPECT_EQ(client.get("/").body, "8000");
}

TEST(Server, ABodyOverTheLimitIsRefused) {
  ServerOptions options = local();
  options.max_body = 100;
  Server server(options);
  server.route("POST", "/", [](const Request&) { return Response{}; });
  server.start();
  EXPECT_EQ(client_of(server).post("/", std::string(100, 'x')).status, 200);
  EXPECT_EQ(client_of(server).post("/", std::string(101, 'x')).status, 413);
}

TEST(Server, PeersThatSayNothingHoldItsThreadsForTheTimeOutOnly) {
  ServerOptions options = local();
  options.threads = 2;
  options.io_timeout = std::chrono::milliseconds(500);
  Server server(options);
  server.route("GET", "/", [](const Request&) { return Response{200, "ok"}; });
  server.start();
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < options.threads; ++i) silent.push_back(connect_to(server.port()));
  EXPECT_EQ(client_of(server).get("/").body, "ok");
}

TEST(Server, AnswersSeveralAtOnce) {
  Server server(local());
  std::atomic<int> inside = 0;
  server.route("GET", "/", [&](const Request&) {
    inside.fetch_add(1);
    inside.notify_all();
    for (int seen = inside; seen < 4; seen = inside) inside.wait(seen);  // until all four are here
    return Response{};
  });
  server.start();
  Client client = client_of(server);
  std::atomic<int> answered = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] { answered += client.get("/").status == 200 ? 1 : 0; });
    }
  }
  EXPECT_EQ(answered, 4);
}

TEST(Server, StopsBeforeAndAfterStart) {
  Server never_started(local());
  never_started.stop();
  Server server(local());
  server.start();
  server.stop();
  server.stop();
  EXPECT_THROW(client_of(server).get("/"), IoError);
}

}  // namespace
}  // namespace outrigger::http
