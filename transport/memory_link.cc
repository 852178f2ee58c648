#include "transport/memory_link.h"

#include <algorithm>
#include <string>
#include <utility>

#include "transport/internal/inbox.h"

namespace outrigger::transport {
namespace {

/// Two ends and what is under way in each direction. Both ends share it.
struct Shared {
  explicit Shared(const LinkOptions& o) : options(o), inboxes{Inbox(o), Inbox(o)} {}

  const LinkOptions options;
  std::array<Inbox, 2> inboxes;
  std::mutex mutex;
  std::array<LinkStats, 2> stats;
  std::array<TimePoint, 2> sent_until{};
  std::array<std::optional<Ending>, 2>
      endings;  ///< as each side sees it; set before the inboxes end
};

class MemoryLink final : public Link {
 public:
  MemoryLink(std::shared_ptr<Shared> shared, size_t side)
      : shared_(std::move(shared)), side_(side) {}
  ~MemoryLink() override { close("the link was destroyed"); }

  bool send_within(Frame frame, Duration timeout) override;
  std::optional<ReceivedFrame> receive(Duration timeout) override;
  bool flush(Duration) override;
  void close(std::string_view reason) override;
  std::optional<std::string> closed_reason() const override;
  std::string peer() const override { return "this process"; }
  LinkStats stats() const override;

 private:
  TimePoint arrival(size_t size);
  std::optional<Ending> ending() const;
  [[noreturn]] void raise() const { ending().value().raise(); }

  const std::shared_ptr<Shared> shared_;
  const size_t side_;
};

bool MemoryLink::send_within(Frame frame, Duration timeout) {
  check_sendable(frame, shared_->options.max_frame_bytes);
  const size_t size = frame_bytes(frame);
  Inbox& to = shared_->inboxes[1 - side_];
  const TimePoint start = system_now();
  bool room = false;
  try {
    room = to.reserve(frame.lane, size, timeout);
  } catch (const Error&) {
    raise();  // what it threw was told from the peer's side
  }
  {
    const std::scoped_lock lock(shared_->mutex);
    LinkStats& stats = shared_->stats[side_];
    stats.send_blocked += system_now() - start;
    if (!room) return false;
    ++stats.frames_sent;
    stats.bytes_sent += size;
  }
  for (Payload& payload : frame.payloads) {
    if (payload.owner == nullptr)
      payload = Payload::of(Bytes(payload.bytes.begin(), payload.bytes.end()));
  }
  const TimePoint ready = arrival(size);
  to.push({frame.type, frame.lane, std::move(frame.message), std::move(frame.payloads)}, size,
          ready);
  return true;
}

TimePoint MemoryLink::arrival(size_t size) {
  const TimePoint time = system_now();
  if (shared_->options.bytes_per_second <= 0) return time;
  const std::scoped_lock lock(shared_->mutex);
  const double seconds = static_cast<double>(size) / shared_->options.bytes_per_second;
  TimePoint& until = shared_->sent_until[side_];
  until = std::max(until, time) +
          std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  return until;
}

std::optional<ReceivedFrame> MemoryLink::receive(Duration timeout) {
  auto taken = shared_->inboxes[side_].take(timeout);
  if (!taken) return std::nullopt;
  return std::move(taken->frame);
}

bool MemoryLink::flush(Duration) {
  if (ending()) raise();
  return true;
}

void MemoryLink::close(std::string_view reason) {
  const Ending ours{.by_us = true, .reason = std::string(reason)};
  const Ending theirs{.by_us = false, .reason = "the peer closed the link: " + ours.reason};
  {
    const std::scoped_lock lock(shared_->mutex);
    std::optional<Ending>& here = shared_->endings[side_];
    if (!here || !here->by_us) here = ours;
    if (!shared_->endings[1 - side_]) shared_->endings[1 - side_] = theirs;
  }
  shared_->inboxes[side_].end(ours);
  shared_->inboxes[1 - side_].end(theirs);
}

std::optional<Ending> MemoryLink::ending() const {
  const std::scoped_lock lock(shared_->mutex);
  return shared_->endings[side_];
}

std::optional<std::string> MemoryLink::closed_reason() const {
  const auto ended = ending();
  if (!ended) return std::nullopt;
  return ended->reason;
}

LinkStats MemoryLink::stats() const {
  LinkStats stats;
  {
    const std::scoped_lock lock(shared_->mutex);
    stats = shared_->stats[side_];
  }
  shared_->inboxes[side_].add_to(stats);
  return stats;
}

}  // namespace

std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> make_memory_links(
    const LinkOptions& options) {
  const auto shared = std::make_shared<Shared>(options);
  return {std::make_unique<MemoryLink>(shared, 0), std::make_unique<MemoryLink>(shared, 1)};
}

}  // namespace outrigger::transport
