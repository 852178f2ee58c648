#include "http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <latch>
#include <stop_token>
#include <thread>

#include "common/error.h"
#include "common/file.h"
#include "http/response_parser.h"

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
    server_.Put("/echo", [](const httplib::Request& request, httplib::Response& response) {
      response.status = 409;
      response.set_header("Retry-After", "7");
      response.set_content(request.body + request.get_header_value("X-Own"), "text/plain");
    });
    server_.Get("/three", [](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("text/plain", [](size_t at, httplib::DataSink& sink) {
        if (at == 3) sink.done();
        return at == 3 || sink.write("x", 1);
      });
    });
    server_.Get("/broken", [](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("text/plain", [](size_t at, httplib::DataSink& sink) {
        return at < 3 && sink.write("x", 1);
      });
    });
    server_.Get("/silent", [this](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("text/plain",
                                            [this](size_t at, httplib::DataSink& sink) {
                                              if (at == 0) return sink.write("x", 1);
                                              asked_.count_down();
                                              end_.wait();
                                              return false;
                                            });
    });
    server_.Get("/endless", [](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider(
          "text/plain", [](size_t, httplib::DataSink& sink) { return sink.write("x", 1); });
    });
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~KeepAliveServer() {
    end_.count_down();
    server_.stop();
  }
  // Until "/silent" has sent its one byte.
  void wait_for_silence() { asked_.wait(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  httplib::Server server_;
  std::latch asked_{1};
  std::latch end_{1};
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

TEST(Client, AnyMethodIsSentAndHeadersOfTheAnswerAreThere) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  const Response response = client.send({"PUT", "/echo", {{"X-Own", "!"}}, "body"});
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.body, "body!");
  EXPECT_EQ(find_header(response.headers, "retry-after"), "7");
}

TEST(Client, AStreamComesInPiecesWithoutTheLimitOfABody) {
  KeepAliveServer server;
  Client client({.base_url = server.url(), .max_body = 1});
  std::string body;
  const auto receiver = [&body](std::string_view piece) {
    body += piece;
    return true;
  };
  EXPECT_EQ(client.stream({"GET", "/three"}, {}, receiver).status, 200);
  EXPECT_EQ(body, "xxx");
}

TEST(Client, AStreamEndsWhenItsReceiverHasEnough) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  size_t size = 0;
  client.stream({"GET", "/endless"}, {}, [&size](std::string_view piece) {
    size += piece.size();
    return size < 5;
  });
  EXPECT_EQ(size, 5u);
}

TEST(Client, AStreamThatBreaksOffIsAnError) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  EXPECT_THROW(client.stream({"GET", "/broken"}, {}, [](std::string_view) { return true; }),
               IoError);
}

TEST(Client, AStreamThatIsSilentOrLastsTooLongIsAnError) {
  using std::chrono::milliseconds;
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  const auto all = [](std::string_view) { return true; };
  EXPECT_THAT(
      [&] {
        client.stream({"GET", "/silent"}, {.silence = milliseconds(50)}, all);
      },
      ThrowsMessage<IoError>(HasSubstr("within 50 ms")));
  EXPECT_THAT(
      [&] {
        client.stream({"GET", "/endless"}, {.whole = milliseconds(50)}, all);
      },
      ThrowsMessage<IoError>(HasSubstr("longer than 50 ms")));
}

// Takes one connection and answers with a head without an end, a byte every few milliseconds.
class DrippingServer {
 public:
  DrippingServer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.get(), any, sizeof address), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(socket_.get(), any, &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::jthread([this] { drip(); });
  }
  const std::string& url() const { return url_; }

 private:
  void drip() const {
    const FileDescriptor peer(::accept(socket_.get(), nullptr, nullptr));
    std::string head = "HTTP/1.1 200 OK\r\nX-Long: ";
    do {
      ::send(peer.get(), head.data(), head.size(), MSG_NOSIGNAL);
      head = "x";
    } while (!has_gone(peer.get()));
  }
  // Waits a little for that.
  static bool has_gone(int peer) {
    pollfd one{peer, POLLRDHUP, 0};
    return ::poll(&one, 1, 5) != 0;
  }

  FileDescriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string url_;
  std::jthread thread_;
};

TEST(Client, AHeadThatComesByteByByteTakesNoLongerThanAnAnswerMay) {
  using std::chrono::milliseconds;
  for (const bool streamed : {false, true}) {
    const DrippingServer server;
    Client client({.base_url = server.url(), .timeout = milliseconds(streamed ? 5000 : 60)});
    EXPECT_THAT(
        [&] {
          if (!streamed) client.get("/");
          client.stream({"GET", "/"}, {.whole = milliseconds(60)},
                        [](std::string_view) { return true; });
        },
        ThrowsMessage<IoError>(HasSubstr("longer than 60 ms")));
  }
}

TEST(Client, WhatIsNoSuccessIsNotStreamed) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  const auto never = [](std::string_view) {
    ADD_FAILURE();
    return true;
  };
  const Response response = client.stream({"PUT", "/echo", {}, "why not"}, {}, never);
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.body, "why not");
}

/// Whoever waits for the server by then is to be told to stop.
std::jthread stop_once_silent(KeepAliveServer& server, std::stop_source& stop) {
  return std::jthread([&] {
    server.wait_for_silence();
    stop.request_stop();
  });
}

TEST(Client, AStopBreaksASilentStream) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  std::stop_source stop;
  const std::jthread stopper = stop_once_silent(server, stop);
  EXPECT_THROW(client.stream(
                   {"GET", "/silent"}, {}, [](std::string_view) { return true; }, stop.get_token()),
               Cancelled);
}

TEST(Client, AStopEndsTheWaitOfAStreamThatGathers) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  std::stop_source stop;
  const std::jthread stopper = stop_once_silent(server, stop);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(client.stream(
                   {"GET", "/silent"}, {.gather = std::chrono::seconds(60)},
                   [](std::string_view) { return true; }, stop.get_token()),
               Cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(Client, AStopBreaksARequestThatIsUnderWay) {
  KeepAliveServer server;
  Client client({.base_url = server.url(), .timeout = std::chrono::seconds(60)});
  std::stop_source stop;
  const std::jthread stopper = stop_once_silent(server, stop);
  EXPECT_THROW(client.send({"GET", "/silent"}, stop.get_token()), Cancelled);
}

TEST(Client, AfterAStopNothingIsSent) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(client.send({"GET", "/port"}, stop.get_token()), Cancelled);
  EXPECT_EQ(client.get("/port").status, 200);
}

TEST(Client, AServerThatIsNotThereIsNamed) {
  Client client({.base_url = "http://127.0.0.1:1"});
  EXPECT_THAT(
      [&] { client.get("/healthz"); },
      ThrowsMessage<IoError>(AllOf(HasSubstr("GET http://127.0.0.1:1/healthz: cannot connect"),
                                   HasSubstr("127.0.0.1:1: Connection refused"))));
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

TEST(Client, WhatWouldBeginAnotherRequestIsRefused) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  EXPECT_THROW(client.send({"GET", "/port", {{"X-Own", "a\r\nX-Other: b"}}}), InvalidInput);
  for (const char* target : {"", "port", "/a b", "/a\r\nX: y"})
    EXPECT_THROW(client.send({"GET", target}), InvalidInput) << target;
  EXPECT_EQ(client.get("/port").status, 200);
}

TEST(Client, FieldsThatWereWrittenBeforeAreSentAsTheyAre) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  std::string line;
  add_field(line, "X-Own", "prepared");
  const std::array<std::string_view, 2> more{line, ""};
  EXPECT_EQ(client.send({"PUT", "/echo", {}, "body "}, more, {}).body, "body prepared");
}

TEST(Client, APrefixIsInFrontOfEveryTarget) {
  KeepAliveServer server;
  EXPECT_EQ(Client({.base_url = server.url(), .prefix = "/port"}).get("/").status, 404);
  EXPECT_THROW(Client({.base_url = server.url(), .prefix = "/a b"}).get("/port"), InvalidInput);
  EXPECT_THAT([&] { Client({.base_url = "http://127.0.0.1:1", .prefix = "/a"}).get("/b"); },
              ThrowsMessage<IoError>(HasSubstr("GET http://127.0.0.1:1/a/b: ")));
}

TEST(Client, AStreamThatGathersLosesNothing) {
  KeepAliveServer server;
  Client client({.base_url = server.url()});
  std::string body;
  const auto receiver = [&body](std::string_view piece) {
    body += piece;
    return true;
  };
  client.stream({"GET", "/three"}, {.gather = std::chrono::milliseconds(5)}, receiver);
  EXPECT_EQ(body, "xxx");
}

// What a response is made of, whatever pieces it comes in.
struct Parsed {
  int status = 0;
  std::string body;
  bool keeps = false;
};

Parsed parsed(std::string_view bytes, size_t piece) {
  Parsed result;
  ResponseParser parser([&](const Response&, std::string_view part) {
    result.body += part;
    return true;
  });
  std::string waiting;
  for (size_t at = 0; at < bytes.size() && !parser.done(); at += piece) {
    waiting += bytes.substr(at, piece);
    waiting.erase(0, parser.feed(waiting));
  }
  if (!parser.done()) parser.finish();
  result.status = parser.head().status;
  result.keeps = parser.keeps_connection();
  return result;
}

TEST(ResponseParser, ReadsResponsesInAnyPieces) {
  const struct {
    const char* bytes;
    int status;
    const char* body;
    bool keeps;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 200,
       "abc", true},
      {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", 201, "x",
       true},
      {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, "x", false},
      {"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, "until the end", false},
  };
  for (const auto& one : cases) {
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}}) {
      const Parsed result = parsed(one.bytes, piece);
      EXPECT_EQ(result.status, one.status) << one.bytes;
      EXPECT_EQ(result.body, one.body) << one.bytes << " in pieces of " << piece;
      EXPECT_EQ(result.keeps, one.keeps) << one.bytes;
    }
  }
}

TEST(ResponseParser, RefusesWhatIsNoneAndWhatBreaksOff) {
  for (const char* bytes :
       {"", "SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "HTTP/1.1 200 OK\r\nHalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"})
    EXPECT_THROW(parsed(bytes, 1000), IoError) << bytes;
}

TEST(PercentEncode, LeavesOnlyWhatNeedsNoEncoding) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode("a/b=c,d e+\xc3\xa9%"), "a%2Fb%3Dc%2Cd%20e%2B%C3%A9%25");
}

TEST(Headers, AreFoundWhateverTheirCase) {
  const Headers headers{{"Content-Type", "a"}, {"X", "b"}};
  EXPECT_EQ(find_header(headers, "content-type"), "a");
  EXPECT_EQ(find_header(headers, "Content-Typ"), std::nullopt);
}

}  // namespace
}  // namespace outrigger::http
