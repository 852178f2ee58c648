// Dialling a name, with a resolver that takes its time and addresses that lead nowhere.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/tcp.h"
#include "link_pairs.h"
#include "transport/internal/socket.h"

namespace outrigger::transport {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr const char* kServer = "server.test";

/// What the resolver of this program says of kServer.
struct Resolver {
  std::vector<const char*> addresses;
  Duration takes{0};
} resolver;

}  // namespace
}  // namespace outrigger::transport

// Comes before the C library's, which it asks for everything else.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using outrigger::transport::resolver;
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool numeric = (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (numeric || host == nullptr || host != std::string_view(outrigger::transport::kServer))
    return real(host, service, hints, found);
  std::this_thread::sleep_for(resolver.takes);
  for (const char* address : resolver.addresses) {
    if (const int failure = real(address, service, hints, found)) return failure;
    found = &(*found)->ai_next;
  }
  return 0;
}

namespace outrigger::transport {
namespace {

class DialTest : public testing::Test {
 protected:
  void try_to_dial(Duration limit) const {
    dial({kServer, listener_.port()}, "token", {.link = quick_options(), .limit = limit});
  }
  /// The server's port at another address, whose listener never accepts.
  FileDescriptor silent(const char* address) const {
    return listen_on({address, listener_.port()});
  }

  Listener listener_{{"127.0.0.1", 0}, "token", {.link = quick_options()}};
};

/// Fills a listener's queue, so that the next who comes gets no answer at all.
std::vector<FileDescriptor> fill(const FileDescriptor& listener, const char* address) {
  ::listen(listener.get(), 0);
  const auto at =
      tcp::resolve(address, local_port(listener.get()), tcp::ResolveFor::kConnecting).front();
  std::vector<FileDescriptor> waiting;
  do {
    waiting.push_back(tcp::open_socket(at));
  } while (tcp::connect(waiting.back().get(), at, system_now() + milliseconds(50)) == 0);
  return waiting;
}

TEST_F(DialTest, TheTimeOfTheResolverIsNotTheDiallers) {
  const FileDescriptor deaf = silent("127.0.0.3");
  resolver = {{"127.0.0.3"}, milliseconds(300)};
  const TimePoint begin = system_now();
  EXPECT_THROW(try_to_dial(milliseconds(200)), LinkClosed);
  EXPECT_GE(system_now() - begin, milliseconds(500));
}

TEST_F(DialTest, AnAddressThatDoesNotAnswerLeavesTimeForTheNext) {
  const FileDescriptor full = silent("127.0.0.2");
  const auto waiting = fill(full, "127.0.0.2");
  const FileDescriptor deaf = silent("127.0.0.3");
  resolver = {{"127.0.0.2", "127.0.0.3", "127.0.0.1"}};
  EXPECT_NO_THROW(try_to_dial(milliseconds(1500)));
}

TEST_F(DialTest, WhatFailedAtEachAddressIsTold) {
  const FileDescriptor deaf = silent("127.0.0.3");
  resolver = {{"127.0.0.2", "127.0.0.3"}};
  const std::string port = std::to_string(listener_.port());
  EXPECT_THAT([&] { try_to_dial(milliseconds(200)); },
              testing::ThrowsMessage<LinkClosed>(testing::AllOf(
                  HasSubstr("joining server.test:" + port), HasSubstr("127.0.0.2:" + port + ": "),
                  HasSubstr("127.0.0.3:" + port + ": no answer in time"))));
}

}  // namespace
}  // namespace outrigger::transport
