#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "transport/internal/channel.h"
#include "transport/internal/framing.h"
#include "transport/internal/inbox.h"
#include "transport/internal/send_queue.h"
#include "transport/link.h"

namespace outrigger::transport {

/// A Link over any Channel: framing, lanes, credits and heartbeats. Two threads, one writes and one
/// reads; the reader never waits for the user of the link, since credits make sure there is room,
/// unless it delivers.
/// What is small is written by the thread that sends it, as far as the channel takes it at once.
class StreamLink final : public Link {
 public:
  StreamLink(std::unique_ptr<Channel> channel, const LinkOptions& options);
  ~StreamLink() override;

  bool send_within(Frame frame, Duration timeout) override;
  size_t send_together_within(std::vector<Frame> frames, Duration timeout) override;
  std::optional<ReceivedFrame> receive(Duration timeout) override;
  void deliver(const Take& take, const std::stop_token& stop) override;
  bool flush(Duration timeout) override;
  void close(std::string_view reason) override;
  std::optional<std::string> closed_reason() const override;
  std::string peer() const override { return channel_->peer(); }
  LinkStats stats() const override;
  void measure_anew() override;

 private:
  void write_small();
  void write_loop();
  void say_goodbye();
  void read_loop();
  void handle(const PacketHeader& header);
  void note_round_trip(TimePoint sent);
  void start_frame(const PacketHeader& header);
  void continue_frame(Lane lane, size_t length);
  void end(Ending ending);

  const LinkOptions options_;
  const std::unique_ptr<Channel> channel_;
  SendQueue queue_;
  Packet packet_;  // of whoever writes
  Inbox inbox_;
  const std::shared_ptr<BufferPool> pool_;         // of what data is received into
  std::array<FrameAssembler, kLanes> assemblers_;  // the reader's
  std::vector<std::span<std::byte>> parts_;        // the reader's
  struct RoundTrip {
    TimePoint sent;
    Duration took;
  };
  std::deque<RoundTrip> round_trips_;  // the reader's, of the last heartbeats
  std::atomic<Duration> round_trip_{Duration{0}};
  std::atomic<TimePoint> measured_since_{TimePoint{}};
  mutable std::mutex mutex_;
  std::condition_variable reader_done_;
  std::optional<Ending> ending_;
  bool reading_ = true;
  std::thread writer_;
  std::thread reader_;
};

}  // namespace outrigger::transport
