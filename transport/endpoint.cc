#include "transport/endpoint.h"

#include <array>
#include <utility>

#include "common/log.h"
#include "common/tcp.h"
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

void prove(int fd, const std::string& token, Purpose purpose, TimePoint deadline) {
  ClientHandshake handshake(token, purpose);
  write_all(fd, handshake.hello(), deadline);
  std::array<std::byte, kHelloBytes> hello;
  read_all(fd, hello, deadline);
  write_all(fd, handshake.on_hello(hello), deadline);
  std::array<std::byte, kVerdictBytes> verdict;
  read_all(fd, verdict, deadline);
  handshake.on_verdict(verdict);
}

}  // namespace

FileDescriptor dial_and_prove(const Address& address, const std::string& token, Purpose purpose,
                              Duration limit) {
  const std::string what = "joining " + to_string(address) + ": ";
  const auto candidates = tcp::resolve(address.host, address.port, tcp::ResolveFor::kConnecting);
  const TimePoint deadline = in(limit);
  std::string failures;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const TimePoint now = system_now();
    const TimePoint share = now + (deadline - now) / static_cast<int64_t>(candidates.size() - i);
    try {
      FileDescriptor fd = connect_to(candidates[i], share);
      prove(fd.get(), token, purpose, share);
      return fd;
    } catch (const HandshakeRefused& refused) {
      throw HandshakeRefused(refused.refusal(), what + refused.what());
    } catch (const IoError& failure) {
      failures += (failures.empty() ? "" : "; ") + candidates[i].text() + ": " + failure.what();
    }
  }
  throw LinkClosed(what + failures);
}

std::unique_ptr<Link> dial(const Address& address, const std::string& token,
                           const DialOptions& options) {
  const bool gloo = options.kind == LinkKind::kGloo;
  FileDescriptor fd = dial_and_prove(
      address, token, gloo ? Purpose::kGlooLink : Purpose::kSocketLink, options.limit);
  if (!gloo) return make_socket_link(std::move(fd), options.link);
  return make_gloo_link(std::move(fd), GlooSide::kWorker, options.link, in(options.limit));
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
