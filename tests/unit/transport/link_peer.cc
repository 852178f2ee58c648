// The other process of link_process_test: `link_peer sockets|gloo host port token mode`. Dials, then behaves as told.
#include <cstdlib>
#include <iostream>
#include <string>

#include "transport/endpoint.h"

namespace outrigger::transport {
namespace {

LinkOptions options() {
  LinkOptions options;
  options.heartbeat_interval = std::chrono::milliseconds(50);
  options.silence_limit = std::chrono::seconds(20);
  return options;
}

void echo(Link& link) {
  for (;;) {
    if (auto frame = link.receive(std::chrono::seconds(60))) {
      link.send({.type = frame->type, .message = std::move(frame->message), .payloads = std::move(frame->payloads)});
    }
  }
}

void flood(Link& link) {
  const Payload payload = Payload::of(Bytes(300'000));
  for (uint16_t i = 0;; ++i) link.send({.type = i, .payloads = {payload, payload}});
}

/// Takes one frame when it is told to by a control frame.
void take_slowly(Link& link) {
  link.send({.type = 1});
  std::string line;
  while (std::getline(std::cin, line)) link.receive(std::chrono::seconds(60));
}

int run(const std::string& kind, const Address& address, const std::string& token, const std::string& mode) {
  try {
    const DialOptions dial_options{.kind = kind == "gloo" ? LinkKind::kGloo : LinkKind::kSockets, .link = options()};
    const auto link = dial(address, token, dial_options);
    if (mode == "echo") echo(*link);
    if (mode == "flood") flood(*link);
    if (mode == "slow") take_slowly(*link);
    return 0;
  } catch (const LinkClosed& closed) {
    std::cerr << closed.what() << '\n';
    return 3;
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << '\n';
    return 4;
  }
}

}  // namespace
}  // namespace outrigger::transport

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const auto port = static_cast<uint16_t>(std::atoi(argv[3]));
  return outrigger::transport::run(argv[1], {argv[2], port}, argv[4], argv[5]);
}
