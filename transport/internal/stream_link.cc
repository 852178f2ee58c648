#include "transport/internal/stream_link.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/thread_name.h"
#include "transport/internal/signals.h"

namespace outrigger::transport {
StreamLink::StreamLink(std::unique_ptr<Channel> channel, const LinkOptions& options)
    : options_(options),
      channel_(std::move(channel)),
      queue_(options),
      inbox_(options),
      pool_(BufferPool::create(2 * options.window_bytes, options.memory)),
      assemblers_{FrameAssembler(pool_), FrameAssembler(BufferPool::create(kMaxControlBytes))} {
  for (const Lane lane : {Lane::kData, Lane::kControl})
    queue_.announce_window(lane, inbox_.window(lane));
  writer_ = std::thread([this] {
    name_thread("link-write");
    write_loop();
  });
  try {
    reader_ = std::thread([this] {
      name_thread("link-read");
      read_loop();
    });
  } catch (...) {
    end({.by_us = false, .reason = "no thread to read with"});
    reading_ = false;
    writer_.join();
    throw;
  }
}

StreamLink::~StreamLink() {
  close("the link was destroyed");
  writer_.join();
  reader_.join();
}

bool StreamLink::send_within(Frame frame, Duration timeout) {
  const auto queued = queue_.push(std::move(frame), timeout);
  if (!queued) return false;
  write_small();
  queue_.wait_for_borrowed(*queued);
  return true;
}

size_t StreamLink::send_together_within(std::vector<Frame> frames, Duration timeout) {
  for (const Frame& frame : frames) check_sendable(frame, options_.max_frame_bytes);
  size_t count = 0;
  for (Frame& frame : frames) {
    const auto queued = queue_.push(std::move(frame), timeout);
    if (!queued) break;
    ++count;
    if (!queued->borrowed) continue;
    write_small();
    queue_.wait_for_borrowed(*queued);
  }
  write_small();
  return count;
}

void StreamLink::write_small() {
  if (!channel_->can_write_some()) return queue_.wake_writer();
  try {
    while (queue_.next_small(packet_)) {
      packet_.drop(channel_->write_some(packet_.pieces));
      if (!packet_.pieces.empty()) return queue_.left();
      queue_.written(packet_);
    }
  } catch (const std::exception& failure) {
    end({.by_us = false, .reason = failure.what()});
    queue_.abandon();
  }
}

std::optional<ReceivedFrame> StreamLink::receive(Duration timeout) {
  auto taken = inbox_.take(timeout);
  if (!taken) return std::nullopt;
  queue_.give_back(taken->frame.lane, taken->size + kFrameCost);
  return std::move(taken->frame);
}

void StreamLink::deliver(const Take& take, const std::stop_token& stop) {
  if (options_.delay > Duration{0}) return Link::deliver(take, stop);
  bool delivered = false;
  while (!delivered && !stop.stop_requested()) {
    // What is there already comes first.
    if (auto frame = receive(Duration{0})) {
      take(std::move(*frame));
    } else {
      delivered = inbox_.deliver(take, stop);
    }
  }
}

bool StreamLink::flush(Duration timeout) { return queue_.flush(timeout); }

void StreamLink::close(std::string_view reason) {
  end({.by_us = true, .reason = std::string(reason.substr(0, kMaxReasonBytes))});
}

std::optional<std::string> StreamLink::closed_reason() const {
  const std::scoped_lock lock(mutex_);
  if (!ending_) return std::nullopt;
  return ending_->reason;
}

LinkStats StreamLink::stats() const {
  LinkStats stats;
  queue_.add_to(stats);
  inbox_.add_to(stats);
  stats.bytes_kept = pool_->kept_bytes();
  stats.receive_rate = channel_->arrival_rate();
  // An emulated wire is throttled between frames, which themselves arrive as fast as the real one
  // brings them; the peer's is taken to be like this side's.
  if (options_.bytes_per_second > 0)
    stats.receive_rate = std::min(stats.receive_rate, options_.bytes_per_second);
  stats.round_trip = round_trip_.load();
  if (stats.round_trip > Duration{0})
    stats.round_trip += 2 * options_.delay;  // heartbeats have none
  return stats;
}

void StreamLink::measure_anew() {
  measured_since_ = system_now();
  queue_.measure_anew();
  channel_->measure_arrivals_anew();
}

void StreamLink::end(Ending ending) {
  {
    const std::scoped_lock lock(mutex_);
    if (!ending_) {
      ending_ = ending;
      if (ending.by_us) {
        channel_->end_by(system_now() + options_.close_limit);
      } else {
        channel_->shutdown();
      }
    }
    // What follows from the first ending (a broken pipe, say) may come to the next two lines before
    // it does.
    if (ending_->by_us || !ending.by_us) ending = *ending_;
  }
  queue_.end(ending);
  inbox_.end(ending);
}

void StreamLink::write_loop() {
  block_signals();
  try {
    while (queue_.next(packet_)) {
      channel_->write(packet_.pieces);
      queue_.written(packet_);
    }
    say_goodbye();
  } catch (const std::exception& failure) {
    end({.by_us = false, .reason = failure.what()});
  }
  queue_.abandon();
  // After our own close the reader waits for the peer's end, but not for long: unread bytes would
  // make the kernel reset the connection, and the peer would lose what was flushed.
  std::unique_lock lock(mutex_);
  reader_done_.wait_for(lock, options_.close_limit, [this] { return !reading_; });
  channel_->shutdown();
}

void StreamLink::say_goodbye() {
  Ending ending;
  {
    const std::scoped_lock lock(mutex_);
    ending = *ending_;
  }
  if (!ending.by_us) return;
  const HeaderBytes header =
      encode({.kind = PacketKind::kClose, .length = static_cast<uint32_t>(ending.reason.size())});
  const std::array<std::span<const std::byte>, 2> pieces = {
      header, std::as_bytes(std::span(ending.reason))};
  channel_->write(pieces);
  channel_->shutdown_writing();
}

void StreamLink::read_loop() {
  block_signals();
  try {
    for (;;) {
      HeaderBytes bytes;
      const std::array<std::span<std::byte>, 1> piece = {bytes};
      channel_->read(piece);
      handle(decode_header(bytes, options_.max_frame_bytes));
    }
  } catch (const std::exception& failure) {
    end({.by_us = false, .reason = failure.what()});
  }
  const std::scoped_lock lock(mutex_);
  reading_ = false;
  reader_done_.notify_all();
}

void StreamLink::handle(const PacketHeader& header) {
  switch (header.kind) {
    case PacketKind::kStart:
      return start_frame(header);
    case PacketKind::kContinue:
      return continue_frame(header.lane, header.length);
    case PacketKind::kWindow:
      return queue_.set_window(header.lane, header.total);
    case PacketKind::kCredit:
      return queue_.credit(header.lane, header.total);
    case PacketKind::kPing:
      queue_.answer_ping(header.total);
      return pool_->drop_unused_since(system_now() - options_.keep_unused);
    case PacketKind::kPong:
      return note_round_trip(TimePoint(Duration(static_cast<int64_t>(header.total))));
    case PacketKind::kClose: {
      std::string reason(header.length, '\0');
      const std::array<std::span<std::byte>, 1> piece = {std::as_writable_bytes(std::span(reason))};
      channel_->read(piece);
      throw LinkClosed("the peer closed the link: " + reason);
    }
  }
}

// Either end may have been busy with what it had just read: the least tells what the link takes.
void StreamLink::note_round_trip(TimePoint sent) {
  constexpr size_t kLately = 4;
  const TimePoint since = measured_since_;
  if (sent < since) return;
  std::erase_if(round_trips_, [&](const RoundTrip& one) { return one.sent < since; });
  round_trips_.push_back({sent, std::max(Duration{0}, system_now() - sent)});
  if (round_trips_.size() > kLately) round_trips_.pop_front();
  round_trip_ = std::ranges::min_element(round_trips_, {}, &RoundTrip::took)->took;
}

void StreamLink::start_frame(const PacketHeader& header) {
  std::vector<std::byte> sizes(header.payload_count * sizeof(uint64_t));
  const std::array<std::span<std::byte>, 1> piece = {sizes};
  channel_->read(piece);
  if (!inbox_.try_reserve(header.lane, header.total)) {
    throw LinkClosed("the peer broke the protocol: it sends beyond its credits");
  }
  FrameAssembler& assembler = assemblers_[static_cast<size_t>(header.lane)];
  assembler.begin(header, sizes);
  continue_frame(header.lane, header.length - sizes.size());
}

void StreamLink::continue_frame(Lane lane, size_t length) {
  FrameAssembler& assembler = assemblers_[static_cast<size_t>(lane)];
  parts_.clear();
  assembler.place(length, parts_);
  channel_->read(parts_);
  if (!assembler.complete()) return;
  const size_t total = assembler.total();
  if (inbox_.push(assembler.take(), total, system_now()))
    queue_.give_back(lane, total + kFrameCost);
}

}  // namespace outrigger::transport
