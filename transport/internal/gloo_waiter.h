#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "common/clock.h"
#include "transport/internal/gloo.h"

namespace outrigger::transport {

/// Waits for sends and receives of one context, one at a time. Gloo tells nobody whose message is
/// half there when the connection breaks, so that only the time-out would end such a wait: a wait
/// is interrupted now and then to look whether the pair still lives.
class GlooWaiter {
 public:
  enum class Kind { kSend, kReceive };

  explicit GlooWaiter(const GlooContext& context);
  ~GlooWaiter();
  GlooWaiter(const GlooWaiter&) = delete;
  GlooWaiter& operator=(const GlooWaiter&) = delete;

  /// Until the operation with `peer` is done. Throws what Gloo throws if its connection broke or
  /// the deadline has passed; a time-out breaks all pairs of the context.
  void wait(gloo::transport::UnboundBuffer& buffer, Kind kind, int peer, TimePoint deadline);

 private:
  struct Waiting {
    gloo::transport::UnboundBuffer* buffer = nullptr;  ///< null: nobody waits
    Kind kind = Kind::kSend;
    uint64_t number = 0;  ///< of the wait
  };

  /// A receive that nobody sends anything for: it is told when its pair breaks. Posted before any
  /// other operation: its notice, come late, would reach a peer that has sent its last and closed,
  /// whose reset would then take what the kernel had not delivered.
  struct Canary {
    std::byte room{};
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  };

  /// Throws what broke the pair with `peer`, if it is broken.
  void look_at(int peer);
  bool wait_once(gloo::transport::UnboundBuffer& buffer, Kind kind, TimePoint deadline);
  void interrupt_long_waits();

  const GlooContext context_;
  std::map<int, Canary> canaries_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  Waiting waiting_;
  std::thread thread_;
};

}  // namespace outrigger::transport
