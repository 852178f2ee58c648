#include "transport/internal/inbox.h"

#include <algorithm>
#include <utility>

namespace outrigger::transport {
namespace {

constexpr size_t kControlWindow = size_t{1} << 20;

}  // namespace

Inbox::Inbox(const LinkOptions& options)
    : windows_{options.window_bytes, kControlWindow}, delay_(options.delay) {}

bool Inbox::fits(Lane lane, size_t cost) const {
  const auto i = static_cast<size_t>(lane);
  return reserved_[i] <= kept_back(windows_[i]) || reserved_[i] + cost <= windows_[i];
}

bool Inbox::try_reserve(Lane lane, size_t size) {
  const std::scoped_lock lock(mutex_);
  if (ending_) return true;
  if (!fits(lane, size + kFrameCost)) return false;
  reserved_[static_cast<size_t>(lane)] += size + kFrameCost;
  return true;
}

bool Inbox::reserve(Lane lane, size_t size, Duration timeout) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return ending_ || fits(lane, size + kFrameCost); };
  if (!room_.wait_until(lock, system_now() + timeout, ready)) return false;
  if (ending_) ending_->raise();
  reserved_[static_cast<size_t>(lane)] += size + kFrameCost;
  return true;
}

bool Inbox::push(ReceivedFrame frame, size_t size, TimePoint not_before) {
  std::unique_lock lock(mutex_);
  if (ending_) return false;
  const auto lane = static_cast<size_t>(frame.lane);
  ++frames_received_;
  bytes_received_ += size;
  if (delivery_ != nullptr) {
    reserved_[lane] -= size + kFrameCost;
    hand_over(*delivery_, std::move(frame), std::move(lock));
    return true;
  }
  frames_[lane].push_back({{std::move(frame), size}, not_before + delay_});
  lock.unlock();
  arrived_.notify_one();
  return false;
}

void Inbox::hand_over(Delivery& delivery, ReceivedFrame frame, std::unique_lock<std::mutex> lock) {
  delivery.busy = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    delivery.take(std::move(frame));
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  delivery.busy = false;
  if (failure != nullptr) {
    delivery.failure = std::move(failure);
    delivery_ = nullptr;
  }
  if (delivery_ != &delivery) arrived_.notify_all();
}

bool Inbox::deliver(const Link::Take& take, const std::stop_token& stop) {
  Delivery delivery{take};
  const std::stop_callback wake(stop, [this] {
    const std::scoped_lock lock(mutex_);
    arrived_.notify_all();
  });
  std::unique_lock lock(mutex_);
  if (!frames_[0].empty() || !frames_[1].empty()) return false;
  delivery_ = &delivery;
  arrived_.wait(lock,
                [&] { return stop.stop_requested() || ending_ || delivery.failure != nullptr; });
  delivery_ = nullptr;
  arrived_.wait(lock, [&] { return !delivery.busy; });
  if (delivery.failure != nullptr) std::rethrow_exception(delivery.failure);
  if (!stop.stop_requested()) ending_->raise();
  return true;
}

std::optional<size_t> Inbox::ready_lane(TimePoint time, TimePoint& wake) const {
  for (const size_t i : kLanesByUrgency) {
    if (frames_[i].empty()) continue;
    if (frames_[i].front().ready <= time) return i;
    wake = std::min(wake, frames_[i].front().ready);
  }
  return std::nullopt;
}

std::optional<Inbox::Taken> Inbox::take(Duration timeout) {
  std::unique_lock lock(mutex_);
  const TimePoint deadline = system_now() + timeout;
  for (;;) {
    if (ending_ && ending_->by_us) ending_->raise();
    const TimePoint time = system_now();
    TimePoint wake = deadline;
    if (const auto lane = ready_lane(time, wake)) {
      Taken taken = std::move(frames_[*lane].front().taken);
      frames_[*lane].pop_front();
      reserved_[*lane] -= taken.size + kFrameCost;
      lock.unlock();
      room_.notify_all();
      return taken;
    }
    if (ending_ && frames_[0].empty() && frames_[1].empty()) ending_->raise();
    if (time >= deadline) return std::nullopt;
    arrived_.wait_until(lock, wake);
  }
}

void Inbox::end(const Ending& ending) {
  {
    const std::scoped_lock lock(mutex_);
    if (!ending_ || ending.by_us) ending_ = ending;  // our own close also drops what has arrived
  }
  arrived_.notify_all();
  room_.notify_all();
}

void Inbox::add_to(LinkStats& stats) const {
  const std::scoped_lock lock(mutex_);
  stats.frames_received += frames_received_;
  stats.bytes_received += bytes_received_;
  for (const auto& lane : frames_) {
    for (const Waiting& waiting : lane) stats.bytes_untaken += waiting.taken.size;
  }
}

}  // namespace outrigger::transport
