#include "transport/internal/gloo_waiter.h"

#include <exception>

#include "transport/internal/signals.h"

namespace outrigger::transport {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(200);
constexpr uint64_t kSlotOfNobody = ~uint64_t{0};

}  // namespace

GlooWaiter::GlooWaiter(const GlooContext& context) : context_(context) {
  for (int peer = 0; peer < context_.context->size; ++peer) {
    if (peer == context_.context->rank) continue;
    Canary& canary = canaries_[peer];
    canary.buffer = context_.context->createUnboundBuffer(&canary.room, sizeof canary.room);
    try {
      canary.buffer->recv(peer, kSlotOfNobody);
    } catch (const std::exception&) {  // it has left already: whatever needs it will say so
    }
  }
  thread_ = std::thread([this] { interrupt_long_waits(); });
}

GlooWaiter::~GlooWaiter() {
  {
    const std::scoped_lock lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void GlooWaiter::wait(gloo::transport::UnboundBuffer& buffer, Kind kind, int peer,
                      TimePoint deadline) {
  while (!wait_once(buffer, kind, deadline)) {
    try {
      look_at(peer);
    } catch (const std::exception&) {
      try {  // what came before the end still counts
        if (wait_once(buffer, kind, SystemClock().now())) return;
      } catch (const std::exception&) {  // it did not come, which is no news
      }
      throw;
    }
  }
}

void GlooWaiter::look_at(int peer) {
  gloo::transport::UnboundBuffer& canary = *canaries_.at(peer).buffer;
  canary.abortWaitRecv();  // or the wait would be one
  canary.waitRecv(nullptr, std::chrono::milliseconds(1));
}

bool GlooWaiter::wait_once(gloo::transport::UnboundBuffer& buffer, Kind kind, TimePoint deadline) {
  const auto set_waiting = [&](gloo::transport::UnboundBuffer* now) {
    const std::scoped_lock lock(mutex_);
    waiting_ = {now, kind, waiting_.number + 1};
  };
  set_waiting(&buffer);
  const auto left = gloo_timeout(deadline - SystemClock().now());
  bool done = false;
  try {
    done = kind == Kind::kSend ? buffer.waitSend(nullptr, left) : buffer.waitRecv(nullptr, left);
  } catch (...) {
    set_waiting(nullptr);
    throw;
  }
  set_waiting(nullptr);
  return done;
}

void GlooWaiter::interrupt_long_waits() {
  block_signals();
  std::unique_lock lock(mutex_);
  while (!end_) {
    const uint64_t before = waiting_.number;
    ended_.wait_for(lock, kLook, [this] { return end_; });
    if (waiting_.buffer == nullptr || waiting_.number != before) continue;
    if (waiting_.kind == Kind::kSend) {
      waiting_.buffer->abortWaitSend();
    } else {
      waiting_.buffer->abortWaitRecv();
    }
  }
}

}  // namespace outrigger::transport
