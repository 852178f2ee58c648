#include "transport/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "transport/link.h"

namespace outrigger::transport {
namespace {

template <size_t size>
std::array<std::byte, size> fixed(const Bytes& bytes) {
  std::array<std::byte, size> result{};
  EXPECT_EQ(bytes.size(), size);
  std::copy_n(bytes.begin(), std::min(size, bytes.size()), result.begin());
  return result;
}

TEST(HandshakeTest, BothSidesWithTheSameTokenAgree) {
  ClientHandshake client("token", Purpose::kCollective);
  ServerHandshake server("token");
  ASSERT_EQ(server.wanted(), kHelloBytes);
  const auto hello = server.advance(client.hello());
  ASSERT_FALSE(hello.fault) << *hello.fault;
  ASSERT_EQ(server.wanted(), kProofBytes);
  const auto verdict = server.advance(client.on_hello(fixed<kHelloBytes>(hello.reply)));
  EXPECT_TRUE(verdict.done);
  EXPECT_EQ(server.wanted(), 0U);
  EXPECT_EQ(server.purpose(), Purpose::kCollective);
  EXPECT_NO_THROW(client.on_verdict(fixed<kVerdictBytes>(verdict.reply)));
}

TEST(HandshakeTest, TheTokenNeverTravels) {
  const std::string token = "a-token-that-must-stay-at-home";
  ClientHandshake client(token, Purpose::kSocketLink);
  ServerHandshake server(token);
  Bytes all(client.hello().begin(), client.hello().end());
  const auto hello = server.advance(client.hello());
  const Bytes proof = client.on_hello(fixed<kHelloBytes>(hello.reply));
  const auto verdict = server.advance(proof);
  for (const Bytes* part : {&hello.reply, &proof, &verdict.reply})
    all.insert(all.end(), part->begin(), part->end());
  const auto secret = std::as_bytes(std::span(token));
  EXPECT_EQ(std::search(all.begin(), all.end(), secret.begin(), secret.begin() + 8), all.end());
}

TEST(HandshakeTest, TheServerTellsAClientWithAnotherTokenSo) {
  ClientHandshake client("mine", Purpose::kSocketLink);
  ServerHandshake server("yours");
  const auto hello = server.advance(client.hello());
  const auto verdict = server.advance(client.on_hello(fixed<kHelloBytes>(hello.reply)));
  EXPECT_FALSE(verdict.done);
  ASSERT_TRUE(verdict.fault);
  EXPECT_NE(verdict.fault->find("token is wrong"), std::string::npos);
  try {
    client.on_verdict(fixed<kVerdictBytes>(verdict.reply));
    FAIL();
  } catch (const HandshakeRefused& refused) {
    EXPECT_EQ(refused.refusal(), Refusal::kToken);
  }
}

TEST(HandshakeTest, AServerThatTakesAnyTokenIsFoundOut) {
  ClientHandshake client("mine", Purpose::kSocketLink);
  ServerHandshake server("yours");
  const auto hello = server.advance(client.hello());
  client.on_hello(fixed<kHelloBytes>(hello.reply));
  const std::array<std::byte, kVerdictBytes> welcome{};
  EXPECT_THROW(client.on_verdict(welcome), HandshakeRefused);
}

TEST(HandshakeTest, AProofFitsNoOtherConnection) {
  ClientHandshake client("token", Purpose::kSocketLink);
  ServerHandshake first("token");
  ServerHandshake second("token");
  const auto hello = first.advance(client.hello());
  const Bytes proof = client.on_hello(fixed<kHelloBytes>(hello.reply));
  second.advance(client.hello());
  EXPECT_FALSE(second.advance(proof).done);
  EXPECT_TRUE(first.advance(proof).done);
}

TEST(HandshakeTest, TheServersProofCannotServeAsAClients) {
  // Reflection: who knows no token lets one server's answer stand for its own.
  ClientHandshake client("token", Purpose::kSocketLink);
  ServerHandshake server("token");
  const auto hello = server.advance(client.hello());
  const auto verdict = server.advance(client.on_hello(fixed<kHelloBytes>(hello.reply)));
  const Bytes evidence(verdict.reply.end() - kProofBytes, verdict.reply.end());
  ServerHandshake other("token");
  other.advance(client.hello());
  EXPECT_FALSE(other.advance(evidence).done);
}

TEST(HandshakeTest, AnotherVersionIsRefusedByBothSidesWithBothNumbers) {
  ClientHandshake client("token", Purpose::kSocketLink);
  Hello newer = client.hello();
  newer[8] = std::byte{77};
  ServerHandshake server("token");
  const auto step = server.advance(newer);
  ASSERT_TRUE(step.fault);
  EXPECT_NE(step.fault->find("version 77"), std::string::npos) << *step.fault;
  EXPECT_EQ(server.wanted(), 0U);
  try {
    client.on_hello(fixed<kHelloBytes>(step.reply));
    FAIL();
  } catch (const HandshakeRefused& refused) {
    EXPECT_EQ(refused.refusal(), Refusal::kVersion);
    EXPECT_NE(std::string(refused.what()).find("version"), std::string::npos);
  }
}

TEST(HandshakeTest, WhatIsNoHelloOfOursIsRefusedWithoutAnAnswer) {
  ServerHandshake server("token");
  const auto step = server.advance(Bytes(kHelloBytes));
  EXPECT_TRUE(step.fault);
  EXPECT_TRUE(step.reply.empty());
  ClientHandshake client("token", Purpose::kSocketLink);
  EXPECT_THROW(client.on_hello(std::array<std::byte, kHelloBytes>{}), LinkClosed);
}

TEST(HandshakeTest, AnUnknownPurposeIsRefused) {
  ClientHandshake client("token", Purpose::kSocketLink);
  Hello hello = client.hello();
  hello[10] = std::byte{99};
  ServerHandshake server("token");
  EXPECT_TRUE(server.advance(hello).fault);
}

}  // namespace
}  // namespace outrigger::transport
