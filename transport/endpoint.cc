#include "transport/endpoint.h"

#include <array>
#include <utility>

#include "common/log.h"
#include "transport/handshake.h"
#include "transport/internal/acceptor.h"
#include "transport/internal/dialer.h"
#include "transport/internal/socket.h"
#include "transport/internal/stream_link.h"

namespace outrigger::transport {
namespace {

std::unique_ptr<Link> make_link(FileDescriptor fd, const LinkOptions& options) {
  return std::make_unique<StreamLink>(make_socket_channel(std::move(fd), options.silence_limit), options);
}

}  // namespace

FileDescriptor dial_and_prove(const Address& address, const std::string& token, Purpose purpose, TimePoint deadline) {
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

std::unique_ptr<Link> dial(const Address& address, const std::string& token, const DialOptions& options) {
  const TimePoint deadline = SystemClock().now() + options.limit;
  return make_link(dial_and_prove(address, token, Purpose::kSocketLink, deadline), options.link);
}

Listener::Listener(const Address& address, std::string token, const ListenerOptions& options)
    : options_(options), acceptor_(std::make_unique<Acceptor>(address, std::move(token), options)) {}

Listener::~Listener() = default;

uint16_t Listener::port() const { return acceptor_->port(); }

std::unique_ptr<Link> Listener::accept(Duration timeout) {
  auto connection = acceptor_->accept(timeout);
  if (!connection) return nullptr;
  return make_link(std::move(connection->fd), options_.link);
}

void Listener::close() { acceptor_->close(); }

ListenerStats Listener::stats() const { return acceptor_->stats(); }

}  // namespace outrigger::transport
