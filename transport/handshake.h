#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/bytes.h"
#include "common/error.h"

/// The first bytes of every connection. Both sides prove that they know the job's token without
/// sending it:
///   client: magic, version, purpose, challenge          server: magic, version, verdict, challenge
///   client: HMAC-SHA256(token, "client" + both hellos)  server: verdict, HMAC-SHA256(token,
///   "server" + both hellos)
/// All messages have a fixed size, so what an unknown peer can make us read is 48 + 32 bytes. What
/// follows is neither encrypted nor signed: the handshake keeps strangers out, not someone who can
/// change packets on the way.
namespace outrigger::transport {

/// Raised with every change of the handshake, of packets, of the codecs or of messages.
constexpr uint16_t kProtocolVersion = 4;

/// What the connection is for.
enum class Purpose : uint16_t { kSocketLink = 1, kGlooLink = 2, kCollective = 3 };

enum class Refusal : uint16_t { kNone = 0, kVersion = 1, kToken = 2 };

/// The handshake ended in a refusal; the text says whose and why. Trying again does not help.
class HandshakeRefused : public Error {
 public:
  HandshakeRefused(Refusal refusal, const std::string& text) : Error(text), refusal_(refusal) {}
  Refusal refusal() const { return refusal_; }

 private:
  Refusal refusal_;
};

constexpr size_t kHelloBytes = 48;
constexpr size_t kProofBytes = 32;
constexpr size_t kVerdictBytes = 4 + kProofBytes;

using Hello = std::array<std::byte, kHelloBytes>;

/// The server's half, without any I/O: feed it messages of wanted() bytes, send what it replies.
class ServerHandshake {
 public:
  explicit ServerHandshake(std::string token);

  /// Size of the message it waits for; 0: nothing more.
  size_t wanted() const;

  struct Step {
    Bytes reply;
    bool done = false;  ///< the client is authenticated
    std::optional<std::string>
        fault;  ///< send the reply (if any) and end the connection, for this reason
  };
  Step advance(std::span<const std::byte> message);

  /// Valid when done.
  Purpose purpose() const { return purpose_; }

 private:
  Step on_hello(std::span<const std::byte> message);
  Step on_proof(std::span<const std::byte> message);

  const std::string token_;
  enum class State { kHello, kProof, kOver } state_ = State::kHello;
  Purpose purpose_ = Purpose::kSocketLink;
  Hello client_{};
  Hello server_{};
};

/// The client's half.
class ClientHandshake {
 public:
  ClientHandshake(std::string token, Purpose purpose);

  const Hello& hello() const { return client_; }
  /// Returns the proof to send. Throws HandshakeRefused for another version, LinkClosed for what is
  /// no server of ours.
  Bytes on_hello(std::span<const std::byte, kHelloBytes> message);
  /// Throws HandshakeRefused when the server refuses the token, or does not know it itself.
  void on_verdict(std::span<const std::byte, kVerdictBytes> message) const;

 private:
  const std::string token_;
  Hello client_{};
  Hello server_{};
};

}  // namespace outrigger::transport
