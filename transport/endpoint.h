#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/address.h"
#include "transport/link.h"

/// How the two ends of a link find each other: the server listens on its one port, workers dial it.
/// A worker is never connected to, so it may sit behind NAT (kSockets; Gloo's links need trusted
/// networks, see docs/decisions/0001-links-over-sockets.md).
namespace outrigger::transport {

/// What carries a link. The dialling side chooses.
enum class LinkKind : uint8_t { kSockets, kGloo };

struct DialOptions {
  LinkKind kind = LinkKind::kSockets;
  LinkOptions link = {};
  /// For connecting and the handshake together, all addresses of a name included; Gloo's own
  /// connections have as long again. Resolving the name comes before, and may take as long as the
  /// system's resolver lets it.
  Duration limit = std::chrono::seconds(5);
};

/// Connects to a listener and proves the token. One try: the caller repeats, and each try resolves
/// the name again. Throws IoError (LinkClosed) when nobody answers in time, HandshakeRefused for
/// another token or version.
std::unique_ptr<Link> dial(const Address& address, const std::string& token,
                           const DialOptions& options = {});

struct ListenerOptions {
  LinkOptions link = {};
  /// An unknown peer has so long to prove the token.
  Duration handshake_limit = std::chrono::seconds(5);
  /// Connections within the handshake, 1 at least; when one more comes, the oldest is dropped.
  size_t max_pending = 128;
  /// But not before it has had so long, which newcomers spend in the kernel's queue: a crowd of
  /// workers would drop one another. Short, so that strangers keep no worker out.
  Duration grace = std::chrono::milliseconds(100);
  /// Links that wait for accept; when there are so many, newcomers wait in the kernel's queue.
  size_t max_waiting = 256;
};

struct ListenerStats {
  uint64_t accepted = 0;
  uint64_t refused = 0;  ///< garbage, wrong token or version, too slow, dropped for a newer one
};

class Acceptor;

/// The server's port. Survives whatever connects. Thread-safe.
class Listener {
 public:
  /// An empty host means every interface, IPv4 and IPv6; port 0 any free port. Throws IoError, e.g.
  /// port in use.
  Listener(const Address& address, std::string token, const ListenerOptions& options = {});
  ~Listener();

  uint16_t port() const;

  /// The next worker's link; null after `timeout`, or when a Gloo link came to nothing. Throws
  /// Cancelled once closed. To be called promptly: a worker whose link is not taken within its
  /// silence limit gives up and dials again.
  std::unique_ptr<Link> accept(Duration timeout);

  /// Takes no more connections; links that were handed out live on.
  void close();

  ListenerStats stats() const;

  /// For Collective::host, whose ranks come to the same port.
  Acceptor& acceptor() { return *acceptor_; }

 private:
  const ListenerOptions options_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace outrigger::transport
