#include "transport/internal/send_queue.h"

#include <algorithm>
#include <utility>

namespace outrigger::transport {
namespace {

/// A piece of so many bytes, or of half of what pieces have, tells how fast the link is.
constexpr size_t kTellingPiece = size_t{4} << 10;

/// So little goes out by the thread that sends it, in a tenth of a millisecond or less: a thread
/// that it would have to wake costs as much.
constexpr size_t kSmall = size_t{256} << 10;

/// So many frames travel together, of so many bytes, which Gloo's envelopes hold.
constexpr size_t kTogether = 16;
constexpr size_t kTogetherBytes = size_t{64} << 10;

/// Of a new machine so many pings in a row tell what the link to it takes, in this part of the
/// usual interval each: one alone may have come while it did something else.
constexpr uint32_t kHurried = 4;
constexpr int kHurry = 50;

/// A throttled link sends in pieces of about this time, so that its heartbeats are not late.
constexpr double kThrottledPiece = 0.01;

size_t chunk_for(const LinkOptions& options) {
  if (options.bytes_per_second <= 0) return options.chunk_bytes;
  const auto piece = static_cast<size_t>(options.bytes_per_second * kThrottledPiece);
  return std::min(options.chunk_bytes, std::max<size_t>(piece, 1024));
}

}  // namespace

SendQueue::SendQueue(const LinkOptions& options)
    : options_(options),
      chunk_(std::max<size_t>(chunk_for(options), 1)),
      next_ping_(system_now()),
      hurried_(kHurried),
      throttled_until_(system_now()),
      rate_(std::min(kTellingPiece, chunk_ / 2)) {}

bool SendQueue::has_room(const LaneState& lane, size_t cost) const {
  return lane.queued == 0 || lane.queued + cost <= options_.max_queued_bytes;
}

std::shared_ptr<const SendQueue::Item> SendQueue::push(Frame frame, Duration timeout) {
  check_sendable(frame, options_.max_frame_bytes);
  const bool borrowed = std::any_of(
      frame.payloads.begin(), frame.payloads.end(),
      [](const Payload& payload) { return payload.owner == nullptr && !payload.bytes.empty(); });
  auto item = std::make_shared<Item>(std::move(frame), borrowed);
  const size_t cost = item->cutter.total() + kFrameCost;
  std::unique_lock lock(mutex_);
  LaneState& lane = lanes_[static_cast<size_t>(item->cutter.lane())];
  const auto ready = [&] { return ending_ || has_room(lane, cost); };
  if (!ready()) {
    to_write_.notify_one();  // of what was pushed before, perhaps
    const TimePoint start = system_now();
    const bool in_time = changed_.wait_until(lock, start + timeout, ready);
    stats_.send_blocked += system_now() - start;
    if (!in_time) return nullptr;
  }
  if (ending_) ending_->raise();
  lane.items.push_back(item);
  lane.queued += cost;
  ++lane.frames;
  return item;
}

bool SendQueue::is_writing(const Item& item) const {
  return std::any_of(in_packet_.begin(), in_packet_.end(),
                     [&](const auto& one) { return one.get() == &item; });
}

void SendQueue::wait_for_borrowed(const Item& item) {
  if (!item.borrowed) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return item.done || (ending_ && !is_writing(item)); });
  if (!item.done) ending_->raise();
}

bool SendQueue::flush(Duration timeout) {
  std::unique_lock lock(mutex_);
  const auto empty = [&] { return lanes_[0].queued == 0 && lanes_[1].queued == 0; };
  const bool in_time =
      changed_.wait_until(lock, system_now() + timeout, [&] { return ending_ || empty(); });
  if (ending_) ending_->raise();
  return in_time;
}

void SendQueue::end(const Ending& ending) {
  std::array<std::deque<std::shared_ptr<Item>>, kLanes>
      dropped;  // frames may be large: freed without the lock
  {
    const std::scoped_lock lock(mutex_);
    if (!ending_ || ending.by_us) ending_ = ending;
    for (size_t i = 0; i < kLanes; ++i) {
      dropped[i].swap(lanes_[i].items);
      lanes_[i].queued = lanes_[i].frames = 0;
    }
  }
  to_write_.notify_all();
  changed_.notify_all();
}

void SendQueue::add_to(LinkStats& stats) const {
  const std::scoped_lock lock(mutex_);
  stats.frames_sent = stats_.frames_sent;
  stats.bytes_sent = stats_.bytes_sent;
  stats.send_blocked = stats_.send_blocked;
  stats.send_rate = rate_.rate();
  for (const LaneState& lane : lanes_) stats.bytes_queued += lane.queued - lane.frames * kFrameCost;
}

void SendQueue::set_window(Lane lane, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  lanes_[static_cast<size_t>(lane)].window = std::max<size_t>(bytes, 1);
  to_write_.notify_one();
}

void SendQueue::credit(Lane lane, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  LaneState& state = lanes_[static_cast<size_t>(lane)];
  if (bytes > state.outstanding)
    throw LinkClosed("the peer broke the protocol: it credits more than it was sent");
  state.outstanding -= bytes;
  to_write_.notify_one();
}

void SendQueue::answer_ping(uint64_t stamp) {
  const std::scoped_lock lock(mutex_);
  pong_ = stamp;
  to_write_.notify_one();
}

void SendQueue::announce_window(Lane lane, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  LaneState& state = lanes_[static_cast<size_t>(lane)];
  state.announce = state.own_window = bytes;
  to_write_.notify_one();
}

void SendQueue::give_back(Lane lane, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  LaneState& state = lanes_[static_cast<size_t>(lane)];
  state.give_back += bytes;
  if (state.owes_credit()) to_write_.notify_one();
}

bool SendQueue::may_send(const LaneState& lane) const {
  if (lane.items.empty()) return false;
  const FrameCutter& cutter = lane.items.front()->cutter;
  if (cutter.started()) return true;
  if (lane.window == 0) return false;
  return lane.outstanding <= kept_back(lane.window) ||
         lane.outstanding + cutter.total() + kFrameCost <= lane.window;
}

std::optional<size_t> SendQueue::sendable_lane(TimePoint time) const {
  if (time < throttled_until_) return std::nullopt;
  for (const size_t i : kLanesByUrgency) {
    if (may_send(lanes_[i])) return i;
  }
  return std::nullopt;
}

bool SendQueue::has_signals(TimePoint time) const {
  return pong_ || time >= next_ping_ ||
         std::any_of(lanes_.begin(), lanes_.end(),
                     [](const LaneState& lane) { return lane.announce > 0 || lane.owes_credit(); });
}

void SendQueue::add_signals(Packet& packet, TimePoint time) {
  for (size_t i = 0; i < kLanes; ++i) {
    const auto lane = static_cast<Lane>(i);
    if (const size_t bytes = std::exchange(lanes_[i].announce, 0)) {
      packet.headers.push_back(encode({.kind = PacketKind::kWindow, .lane = lane, .total = bytes}));
    }
    if (lanes_[i].owes_credit()) {
      const size_t bytes = std::exchange(lanes_[i].give_back, 0);
      packet.headers.push_back(encode({.kind = PacketKind::kCredit, .lane = lane, .total = bytes}));
    }
  }
  if (pong_) packet.headers.push_back(encode({.kind = PacketKind::kPong, .total = *pong_}));
  pong_.reset();
  if (time >= next_ping_) {
    if (hurried_ > 0) --hurried_;
    next_ping_ = time + options_.heartbeat_interval / (hurried_ > 0 ? kHurry : 1);
    const auto stamp = static_cast<uint64_t>(time.time_since_epoch().count());
    packet.headers.push_back(encode({.kind = PacketKind::kPing, .total = stamp}));
  }
  for (const HeaderBytes& header : packet.headers) packet.pieces.emplace_back(header);
}

void SendQueue::add_piece(Packet& packet, size_t lane) {
  LaneState& state = lanes_[lane];
  in_packet_.push_back(state.items.front());
  FrameCutter& cutter = in_packet_.back()->cutter;
  if (!cutter.started()) state.outstanding += cutter.total() + kFrameCost;
  const size_t place = packet.pieces.size();
  packet.pieces.emplace_back();
  const PacketHeader header = cutter.cut(chunk_, packet.pieces);
  packet.headers.push_back(encode(header));
  packet.pieces[place] = packet.headers.back();
  packet.frame_part += header.length;
  if (cutter.finished()) state.items.pop_front();
}

/// Of the frame that may travel with those that are in the packet.
std::optional<size_t> SendQueue::lane_of_one_more(const Packet& packet, TimePoint time) const {
  if (in_packet_.size() >= kTogether || !in_packet_.back()->cutter.finished()) return std::nullopt;
  const auto lane = sendable_lane(time);
  if (!lane) return std::nullopt;
  const FrameCutter& cutter = lanes_[*lane].items.front()->cutter;
  const size_t most = std::min(kTogetherBytes, chunk_);
  if (cutter.started() || packet.frame_part + cutter.total() > most) return std::nullopt;
  return lane;
}

void SendQueue::fill(Packet& packet, std::optional<size_t> lane, TimePoint time) {
  writing_ = Writing::kSomebody;
  packet.begin(2 * kLanes + 2 + kTogether, time);
  add_signals(packet, time);
  for (; lane; lane = lane_of_one_more(packet, time)) add_piece(packet, *lane);
}

bool SendQueue::next(Packet& packet) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (writing_ == Writing::kSomebody) {  // who looks for more, and wakes the writer where need be
      to_write_.wait_until(lock, system_now() + options_.heartbeat_interval);
      continue;
    }
    if (writing_ == Writing::kLeft) {
      writing_ = Writing::kSomebody;
      return true;
    }
    if (ending_) return false;
    const TimePoint time = system_now();
    const auto lane = sendable_lane(time);
    if (lane || has_signals(time)) {
      fill(packet, lane, time);
      return true;
    }
    const bool throttled = time < throttled_until_;
    to_write_.wait_until(lock, throttled ? std::min(next_ping_, throttled_until_) : next_ping_);
  }
}

bool SendQueue::next_small(Packet& packet) {
  const std::scoped_lock lock(mutex_);
  if (writing_ != Writing::kNobody) return false;
  const TimePoint time = system_now();
  const auto lane = ending_ ? std::nullopt : sendable_lane(time);
  if (lane && lanes_[*lane].items.front()->cutter.total() <= kSmall) {
    fill(packet, lane, time);
    return true;
  }
  const bool throttled = time < throttled_until_ && lanes_[0].frames + lanes_[1].frames > 0;
  // While pings are in a hurry the writer, which sleeps where somebody else writes, asks when.
  if (lane || throttled || ending_ || hurried_ > 0 || has_signals(time)) to_write_.notify_one();
  return false;
}

void SendQueue::measure_anew() {
  const std::scoped_lock lock(mutex_);
  rate_.begin_anew();
  hurried_ = kHurried;
  next_ping_ = system_now();
  to_write_.notify_one();
}

void SendQueue::written(const Packet& packet) {
  std::vector<std::shared_ptr<Item>> written;  // freed without the lock
  const std::scoped_lock lock(mutex_);
  const TimePoint time = system_now();
  writing_ = Writing::kNobody;
  written.swap(in_packet_);
  if (written.empty()) return;
  stats_.bytes_sent += packet.frame_part;
  Duration busy = time - packet.start;
  if (options_.bytes_per_second > 0) {
    const double seconds = static_cast<double>(packet.cost()) / options_.bytes_per_second;
    const auto pause = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    throttled_until_ = std::max(throttled_until_, packet.start) + pause;
    busy = std::max(busy, pause);
  }
  rate_.add(packet.frame_part, busy);
  for (const auto& item : written) {
    if (!item->cutter.finished()) continue;
    item->done = true;
    ++stats_.frames_sent;
    LaneState& lane = lanes_[static_cast<size_t>(item->cutter.lane())];
    if (ending_) continue;
    lane.queued -= item->cutter.total() + kFrameCost;
    --lane.frames;
  }
  changed_.notify_all();
}

void SendQueue::left() {
  const std::scoped_lock lock(mutex_);
  writing_ = Writing::kLeft;
  to_write_.notify_one();
}

void SendQueue::abandon() {
  const std::scoped_lock lock(mutex_);
  writing_ = Writing::kNobody;
  in_packet_.clear();
  to_write_.notify_one();
  changed_.notify_all();
}

}  // namespace outrigger::transport
