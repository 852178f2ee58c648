// The other process of link_process_test: `link_peer sockets|gloo host port token mode`. Dials,
// then behaves as told.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
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
      link.send({.type = frame->type,
                 .message = std::move(frame->message),
                 .payloads = std::move(frame->payloads)});
    }
  }
}

void flood(Link& link) {
  const Payload payload = Payload::of(Bytes(300'000));
  for (uint16_t i = 0;; ++i) link.send({.type = i, .payloads = {payload, payload}});
}

/// From now on listen(2) fails, as if the network let nobody in.
void forbid_listening() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_listen, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = 4, .filter = filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    throw_errno("seccomp", errno);
  }
}

/// Takes one frame when it is told to by a control frame.
void take_slowly(Link& link) {
  link.send({.type = 1});
  std::string line;
  while (std::getline(std::cin, line)) link.receive(std::chrono::seconds(60));
}

int run(const std::string& kind, const Address& address, const std::string& token,
        const std::string& mode) {
  try {
    if (mode == "nat") forbid_listening();
    const DialOptions dial_options{.kind = kind == "gloo" ? LinkKind::kGloo : LinkKind::kSockets,
                                   .link = options()};
    const auto link = dial(address, token, dial_options);
    if (mode == "echo") echo(*link);
    if (mode == "flood") flood(*link);
    if (mode == "slow") take_slowly(*link);
    if (mode == "nat" || mode == "idle") link->receive(std::chrono::seconds(60));
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
  const auto port = static_cast<uint16_t>(std::strtol(argv[3], nullptr, 10));
  return outrigger::transport::run(argv[1], {argv[2], port}, argv[4], argv[5]);
}
