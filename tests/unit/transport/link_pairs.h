#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/endpoint.h"
#include "transport/link.h"

namespace outrigger::transport {

enum class Carrier { kMemory, kSockets, kGloo };

std::string to_string(Carrier carrier);
/// For GoogleTest's messages.
void PrintTo(Carrier carrier, std::ostream* out);

/// Two connected ends, and what has to live as long as they do.
struct LinkPair {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Link> server;
  std::unique_ptr<Link> worker;
};

/// Short intervals, small windows: what takes seconds in life takes milliseconds in tests.
LinkOptions quick_options();

LinkPair connect(Carrier carrier, const LinkOptions& server, const LinkOptions& worker);
LinkPair connect(Carrier carrier, const LinkOptions& options = quick_options());

/// `size` bytes that depend on `seed`, each at its place.
Bytes pattern(size_t size, uint32_t seed);

Frame frame_of(uint16_t type, Bytes message = {}, std::vector<Bytes> payloads = {});

/// The next frame; fails the test and throws when none comes within ten seconds.
ReceivedFrame receive_one(Link& link);

/// Waits until the link has ended and says why; drops what still arrives. Fails the test after ten
/// seconds.
std::string wait_for_end(Link& link);

/// Entries of a folder of /proc/self, such as "fd" or "task".
size_t count_in_proc(const std::string& folder);

}  // namespace outrigger::transport
