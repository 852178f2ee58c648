#include "transport/endpoint.h"

#include <array>
#include <utility>

#include "common/log.h"
#include "transport/handshake.h"
#include "transport/internal/acceptor.h"
#include "transport/internal/dialer.h"
#include "transport/internal/gloo_channel.h"
#include "transport/internal/socket.h"
#include "transport/internal/stream_link.h"

namespace outrigger::transport {
namespace {

constexpr size_t kGlooChunkFactor = 8;

TimePoint in(Duration time) { return SystemClock().now() + time; }

std::unique_ptr<Link> make_socket_link(FileDescriptor fd, const LinkOptions& options) {
  return std::make_unique<StreamLink>(make_socket_channel(std::move(fd), options.silence_limit),
                                      options);
}

std::unique_ptr<Link> make_gloo_link(FileDescriptor fd, GlooSide side, LinkOptions options,
                                     TimePoint deadline) {
  // Each piece costs Gloo a round trip (ready to receive, then the bytes), so pieces are larger.
  options.chunk_bytes *= kGlooChunkFactor;
  return std::make_unique<StreamLink>(
      make_gloo_channel(std::move(fd), side, options.silence_limit, deadline), options);
}

}  // namespace

FileDescriptor dial_and_prove(const Address& address, const std::string& token, Purpose purpose,
                              TimePoint deadline) {
  const std::string what = "joining " + to_string(address) + ": ";
  try {
    FileDescriptor fd = connect_to(address, deadline);
    ClientHandshake handshake(token, purpose);
    write_all(fd.get(), handshake.hello(), deadline);
    std::array<std::byte, kHelloBytes> hello;
    read_all(fd.get(), hello, deadline);
    write_all(fd.get(), handshake.on_hello(hello), deadline);
    std::array<std::byte, kVerdictBytes> verdict;
    read_all(fd.get(), verdict, deadline);
    handshake.on_verdict(verdict);
    return fd;
  } catch (const HandshakeRefused& refused) {
    throw HandshakeRefused(refused.refusal(), what + refused.what());
  } catch (const LinkClosed& closed) {
    throw LinkClosed(what + closed.what());
  }
}

std::unique_ptr<Link> dial(const Address& address, const std::string& token,
                           const DialOptions& options) {
  const TimePoint deadline = in(options.limit);
  if (options.kind == LinkKind::kSockets) {
    return make_socket_link(dial_and_prove(address, token, Purpose::kSocketLink, deadline),
                            options.link);
  }
  FileDescriptor fd = dial_and_prove(address, token, Purpose::kGlooLink, deadline);
  return make_gloo_link(std::move(fd), GlooSide::kWorker, options.link, deadline);
}

Listener::Listener(const Address& address, std::string token, const ListenerOptions& options)
    : options_(options),
      acceptor_(std::make_unique<Acceptor>(address, std::move(token), options)) {}

Listener::~Listener() = default;

uint16_t Listener::port() const { return acceptor_->port(); }

std::unique_ptr<Link> Listener::accept(Duration timeout) {
  auto connection = acceptor_->accept(timeout);
  if (!connection) return nullptr;
  if (connection->purpose == Purpose::kSocketLink)
    return make_socket_link(std::move(connection->fd), options_.link);
  try {
    const TimePoint deadline = in(options_.handshake_limit);
    return make_gloo_link(std::move(connection->fd), GlooSide::kServer, options_.link, deadline);
  } catch (const LinkClosed& failure) {
    log::warning("no link with {}: {}", connection->peer, failure.what());
    return nullptr;
  }
}

void Listener::close() { acceptor_->close(); }

ListenerStats Listener::stats() const { return acceptor_->stats(); }

}  // namespace outrigger::transport
