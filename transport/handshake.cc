#include "transport/handshake.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/hash.h"
#include "transport/link.h"

namespace outrigger::transport {
namespace {

constexpr std::string_view kHandshakeMagic = "OUTRIGGR";
constexpr size_t kChallengeBytes = 32;

Hello make_hello(uint16_t word) {
  ByteWriter writer;
  writer.raw(kHandshakeMagic.data(), kHandshakeMagic.size());
  writer.number(kProtocolVersion);
  writer.number(word);
  writer.number(uint32_t{0});
  const std::string challenge = random_bytes(kChallengeBytes);
  writer.raw(challenge.data(), challenge.size());
  const Bytes bytes = writer.take();
  Hello hello;
  std::copy(bytes.begin(), bytes.end(), hello.begin());
  return hello;
}

struct HelloFields {
  uint16_t version = 0;
  uint16_t word = 0;
};

/// Nothing if the bytes are no hello of ours.
std::optional<HelloFields> read_hello(std::span<const std::byte> message) {
  if (message.size() != kHelloBytes ||
      std::memcmp(message.data(), kHandshakeMagic.data(), kHandshakeMagic.size()) != 0) {
    return std::nullopt;
  }
  ByteReader reader(message.subspan(kHandshakeMagic.size()));
  HelloFields fields;
  fields.version = reader.number<uint16_t>();
  fields.word = reader.number<uint16_t>();
  return fields;
}

/// Both hellos are in it, with versions, purpose and challenges, so a proof fits one connection and
/// one role only.
Sha256 proof(std::string_view token, std::string_view role, const Hello& client,
             const Hello& server) {
  ByteWriter writer;
  writer.text(role);
  writer.raw(client.data(), client.size());
  writer.raw(server.data(), server.size());
  return hmac_sha256(token, writer.take());
}

Bytes to_bytes(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

Bytes make_verdict(Refusal refusal, std::span<const std::byte> evidence) {
  ByteWriter writer;
  writer.number(refusal);
  writer.number(uint16_t{0});
  writer.raw(evidence.data(), evidence.size());
  return writer.take();
}

std::string versions(uint16_t theirs, const char* whose) {
  return std::string(whose) + " speaks protocol version " + std::to_string(theirs) +
         ", this program version " + std::to_string(kProtocolVersion) +
         ": use the same release on both sides";
}

}  // namespace

ServerHandshake::ServerHandshake(std::string token) : token_(std::move(token)) {}

size_t ServerHandshake::wanted() const {
  if (state_ == State::kHello) return kHelloBytes;
  return state_ == State::kProof ? kProofBytes : 0;
}

ServerHandshake::Step ServerHandshake::advance(std::span<const std::byte> message) {
  switch (state_) {
    case State::kHello:
      return on_hello(message);
    case State::kProof:
      return on_proof(message);
    case State::kOver:
      break;
  }
  return {.reply = {}, .done = false, .fault = "bytes after the handshake"};
}

ServerHandshake::Step ServerHandshake::on_hello(std::span<const std::byte> message) {
  state_ = State::kOver;
  const auto fields = read_hello(message);
  if (!fields) return {.reply = {}, .done = false, .fault = "it does not speak our protocol"};
  if (fields->version != kProtocolVersion) {
    const Hello refusal = make_hello(static_cast<uint16_t>(Refusal::kVersion));
    return {.reply = to_bytes(refusal),
            .done = false,
            .fault = versions(fields->version, "the client")};
  }
  if (fields->word < 1 || fields->word > static_cast<uint16_t>(Purpose::kCollective)) {
    return {.reply = {}, .done = false, .fault = "unknown purpose " + std::to_string(fields->word)};
  }
  purpose_ = static_cast<Purpose>(fields->word);
  std::copy(message.begin(), message.end(), client_.begin());
  server_ = make_hello(static_cast<uint16_t>(Refusal::kNone));
  state_ = State::kProof;
  return {.reply = to_bytes(server_), .done = false, .fault = std::nullopt};
}

ServerHandshake::Step ServerHandshake::on_proof(std::span<const std::byte> message) {
  state_ = State::kOver;
  if (!equal_in_constant_time(message, proof(token_, "client", client_, server_))) {
    return {.reply = make_verdict(Refusal::kToken, Sha256{}),
            .done = false,
            .fault = "its token is wrong"};
  }
  return {.reply = make_verdict(Refusal::kNone, proof(token_, "server", client_, server_)),
          .done = true,
          .fault = std::nullopt};
}

ClientHandshake::ClientHandshake(std::string token, Purpose purpose)
    : token_(std::move(token)), client_(make_hello(static_cast<uint16_t>(purpose))) {}

Bytes ClientHandshake::on_hello(std::span<const std::byte, kHelloBytes> message) {
  const auto fields = read_hello(message);
  if (!fields) throw LinkClosed("what answers is no Outrigger server");
  if (fields->version != kProtocolVersion ||
      fields->word == static_cast<uint16_t>(Refusal::kVersion)) {
    throw HandshakeRefused(Refusal::kVersion, versions(fields->version, "the server"));
  }
  std::copy(message.begin(), message.end(), server_.begin());
  return to_bytes(proof(token_, "client", client_, server_));
}

void ClientHandshake::on_verdict(std::span<const std::byte, kVerdictBytes> message) const {
  ByteReader reader(message);
  const auto refusal = reader.number<Refusal>();
  reader.number<uint16_t>();
  const auto evidence = reader.raw(kProofBytes);
  if (refusal == Refusal::kToken) {
    throw HandshakeRefused(refusal, "the server refuses our token: it is not the one of its job");
  }
  if (refusal != Refusal::kNone ||
      !equal_in_constant_time(evidence, proof(token_, "server", client_, server_))) {
    throw HandshakeRefused(Refusal::kToken,
                           "the server does not know the token: it is not the one of our job");
  }
}

}  // namespace outrigger::transport
