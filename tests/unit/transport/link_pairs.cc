#include "link_pairs.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <ostream>
#include <thread>
#include <utility>

#include "transport/memory_link.h"

#ifdef __has_feature  // clang
#if (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer)) && \
    __has_include(<sanitizer/common_interface_defs.h>)
#include <sanitizer/common_interface_defs.h>
#define OUTRIGGER_CLANG_SANITIZER
#endif
#endif

// The packaged Gloo is not built for ThreadSanitizer, which cannot see the reference counts that
// keep its buffers.
// NOLINTBEGIN(readability-identifier-naming): the sanitizer's own name
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:gloo::transport\n"; }
// NOLINTEND(readability-identifier-naming)

namespace outrigger::transport {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

}  // namespace

std::string to_string(Carrier carrier) {
  switch (carrier) {
    case Carrier::kMemory:
      return "Memory";
    case Carrier::kSockets:
      return "Sockets";
    case Carrier::kGloo:
      return "Gloo";
  }
  return "?";
}

void PrintTo(Carrier carrier, std::ostream* out) { *out << to_string(carrier); }

LinkOptions quick_options() {
  LinkOptions options;
  options.max_frame_bytes = size_t{64} << 20;
  options.window_bytes = size_t{1} << 20;
  options.max_queued_bytes = size_t{1} << 20;
  options.chunk_bytes = size_t{64} << 10;
  options.heartbeat_interval = std::chrono::milliseconds(50);
  options.close_limit = std::chrono::milliseconds(500);
  return options;
}

LinkPair connect(Carrier carrier, const LinkOptions& server, const LinkOptions& worker) {
  LinkPair pair;
  if (carrier == Carrier::kMemory) {
    std::tie(pair.server, pair.worker) = make_memory_links(server);
    return pair;
  }
  pair.listener =
      std::make_unique<Listener>(Address{"127.0.0.1", 0}, "token", ListenerOptions{.link = server});
  const Address address{"127.0.0.1", pair.listener->port()};
  const DialOptions options{
      .kind = carrier == Carrier::kGloo ? LinkKind::kGloo : LinkKind::kSockets, .link = worker};
  std::thread dialler([&] { pair.worker = dial(address, "token", options); });
  pair.server = pair.listener->accept(kPatience);
  dialler.join();
  if (!pair.server || !pair.worker) throw IoError("no link could be made");
  return pair;
}

LinkPair connect(Carrier carrier, const LinkOptions& options) {
  return connect(carrier, options, options);
}

Bytes pattern(size_t size, uint32_t seed) {
  Bytes bytes(size);
  uint32_t state = seed * 2654435761U + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

Frame frame_of(uint16_t type, Bytes message, std::vector<Bytes> payloads) {
  Frame frame{.type = type, .message = std::move(message), .payloads = {}};
  for (Bytes& payload : payloads) frame.payloads.push_back(Payload::of(std::move(payload)));
  return frame;
}

ReceivedFrame receive_one(Link& link) {
  auto frame = link.receive(kPatience);
  if (!frame) {
    ADD_FAILURE() << "no frame came in time";
    throw IoError("no frame came in time");
  }
  return std::move(*frame);
}

std::string wait_for_end(Link& link) {
  const TimePoint limit = SystemClock().now() + kPatience;
  try {
    while (SystemClock().now() < limit) {
      if (const auto frame = link.receive(kPatience)) continue;
    }
  } catch (const LinkClosed& closed) {
    return closed.what();
  } catch (const Cancelled& cancelled) {
    return cancelled.what();
  }
  ADD_FAILURE() << "the link did not end in time";
  return {};
}

namespace {

/// clang's sanitizers start a process that reads symbols, with two pipes to it, at the first
/// report, a suppressed one too (Gloo's): start it before anything is counted.
void start_symbolizer() {
#ifdef OUTRIGGER_CLANG_SANITIZER
  std::array<char, 256> name{};
  __sanitizer_symbolize_pc(reinterpret_cast<void*>(&count_in_proc), "%f", name.data(), name.size());
#endif
}

}  // namespace

size_t count_in_proc(const std::string& folder) {
  start_symbolizer();
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/" + folder))
    ++count;
  return count;
}

}  // namespace outrigger::transport
