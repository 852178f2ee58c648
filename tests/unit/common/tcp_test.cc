#include "common/tcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace outrigger::tcp {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts(const std::string& host, ResolveFor use = ResolveFor::kConnecting) {
  std::vector<std::string> all;
  for (const SocketAddress& address : resolve(host, 80, use)) all.push_back(address.text());
  return all;
}

TEST(TcpResolve, AnAddressIsItself) {
  EXPECT_THAT(texts("127.0.0.1"), ElementsAre("127.0.0.1:80"));
  EXPECT_THAT(texts("::1"), ElementsAre("[::1]:80"));
}

TEST(TcpResolve, ANameIsLookedUp) { EXPECT_THAT(texts("localhost"), Contains("127.0.0.1:80")); }

TEST(TcpResolve, WhatListensMayNameNoHost) {
  EXPECT_THAT(texts("", ResolveFor::kListening), Contains("0.0.0.0:80"));
}

TEST(TcpResolve, ANameThatIsNoneIsToldWithItsPort) {
  try {
    (void)texts("a..b");
    FAIL() << "resolved";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a..b:80"));
  }
}

}  // namespace
}  // namespace outrigger::tcp
