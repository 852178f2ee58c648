#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "common/tcp.h"
#include "transport/internal/arrival_meter.h"
#include "transport/internal/socket.h"
#include "transport/link.h"

namespace outrigger::transport {
namespace {

constexpr size_t kMaxPieces = 256;  // below IOV_MAX
/// Headers and small frames are read ahead in this; what is large goes straight to its place.
constexpr size_t kReadAhead = size_t{16} << 10;
/// While at least so much is still to come, the reader is woken for no less, unless the wire is so
/// slow that it takes longer than this.
constexpr int kLot = 256 << 10;
constexpr Duration kLotPatience = std::chrono::milliseconds(50);
/// How often a blocked write looks whether it should give up.
constexpr Duration kSlice = std::chrono::milliseconds(20);

[[noreturn]] void lost(int number) {
  throw LinkClosed("the connection broke: " + tcp::error_text(number));
}

Duration since_epoch(const std::timespec& time) {
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

/// When the last byte of what a message holds came; absent: the kernel does not say.
std::optional<Duration> arrival_of(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    std::timespec time{};
    std::memcpy(&time, CMSG_DATA(part), sizeof time);
    return since_epoch(time);
  }
  return std::nullopt;
}

/// By the clock of arrivals.
Duration kernel_now() {
  std::timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return since_epoch(time);
}

std::string in_words(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) +
         " ms";
}

class SocketChannel final : public Channel {
 public:
  SocketChannel(FileDescriptor fd, Duration silence_limit)
      : fd_(std::move(fd)),
        silence_limit_(silence_limit),
        peer_(peer_name(fd_.get())),
        ahead_(kReadAhead) {
    tcp::set_option(fd_.get(), SOL_SOCKET, SO_TIMESTAMPNS, 1);
  }

  void write(std::span<const std::span<const std::byte>> pieces) override;
  bool can_write_some() const override { return true; }
  size_t write_some(std::span<const std::span<const std::byte>> pieces) override;
  void read(std::span<const std::span<std::byte>> pieces) override;
  void end_by(TimePoint limit) override { end_by_ = limit.time_since_epoch().count(); }
  void shutdown_writing() override { ::shutdown(fd_.get(), SHUT_WR); }
  void shutdown() override { ::shutdown(fd_.get(), SHUT_RDWR); }
  std::string peer() const override { return peer_; }
  double arrival_rate() const override { return arrival_rate_; }
  void measure_arrivals_anew() override { measure_anew_ = true; }

 private:
  void set_to_write(std::span<const std::span<const std::byte>> pieces);
  /// From the piece on that is the first: how many bytes, 0 where there is no room for any now.
  size_t try_write(size_t first) const;
  void wait_to_write(TimePoint last_progress) const;
  void take_ahead(std::vector<iovec>& todo, size_t& first);
  void read_some(std::vector<iovec>& todo, size_t& first);
  void wake_for(int bytes);
  bool wait_to_read(size_t wanted, TimePoint limit);
  static void advance(std::vector<iovec>& todo, size_t& first, size_t bytes);

  const FileDescriptor fd_;
  const Duration silence_limit_;
  const std::string peer_;
  std::atomic<int64_t> end_by_{INT64_MAX};
  std::vector<iovec> to_write_;  // of whoever writes
  std::vector<iovec> to_read_;   // the reader's, as all below
  std::vector<std::byte> ahead_;
  size_t ahead_begin_ = 0;
  size_t ahead_end_ = 0;
  int wakes_for_ = 1;
  ArrivalMeter arrivals_;
  std::atomic<double> arrival_rate_{0};
  std::atomic<bool> measure_anew_{false};  // to the reader, whose arrivals_ are
};

void SocketChannel::advance(std::vector<iovec>& todo, size_t& first, size_t bytes) {
  while (first < todo.size() && bytes >= todo[first].iov_len) bytes -= todo[first++].iov_len;
  if (bytes == 0) return;
  todo[first].iov_base = static_cast<std::byte*>(todo[first].iov_base) + bytes;
  todo[first].iov_len -= bytes;
}

void SocketChannel::set_to_write(std::span<const std::span<const std::byte>> pieces) {
  to_write_.clear();
  for (const auto& piece : pieces) {
    if (!piece.empty()) to_write_.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  }
}

void SocketChannel::write(std::span<const std::span<const std::byte>> pieces) {
  set_to_write(pieces);
  size_t first = 0;
  while (first < to_write_.size()) {
    const TimePoint start = system_now();
    size_t bytes = 0;
    while ((bytes = try_write(first)) == 0) wait_to_write(start);
    advance(to_write_, first, bytes);
  }
}

size_t SocketChannel::write_some(std::span<const std::span<const std::byte>> pieces) {
  set_to_write(pieces);
  return try_write(0);
}

size_t SocketChannel::try_write(size_t first) const {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(to_write_.data()) + first;
  message.msg_iovlen = std::min(to_write_.size() - first, kMaxPieces);
  for (;;) {
    const ssize_t n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) lost(errno);
  }
}

void SocketChannel::wait_to_write(TimePoint last_progress) const {
  for (;;) {
    // Looks at the socket before at the clock: if we were the ones who stood still, the peer is not
    // to blame.
    if (tcp::wait_for(fd_.get(), POLLOUT, system_now() + kSlice)) return;
    const TimePoint time = system_now();
    if (time.time_since_epoch().count() >= end_by_.load())
      throw LinkClosed("closed before all was written");
    if (time >= last_progress + silence_limit_) {
      throw LinkClosed("the peer has taken nothing for " + in_words(silence_limit_));
    }
  }
}

void SocketChannel::read(std::span<const std::span<std::byte>> pieces) {
  to_read_.clear();
  for (const auto& piece : pieces) {
    if (!piece.empty()) to_read_.push_back({piece.data(), piece.size()});
  }
  size_t first = 0;
  if (measure_anew_.exchange(false)) arrivals_.begin_anew();
  arrivals_.begin(ahead_begin_ < ahead_end_);
  take_ahead(to_read_, first);
  while (first < to_read_.size()) read_some(to_read_, first);
  arrivals_.end();
  arrival_rate_ = arrivals_.rate();
}

void SocketChannel::take_ahead(std::vector<iovec>& todo, size_t& first) {
  while (first < todo.size() && ahead_begin_ < ahead_end_) {
    const size_t n = std::min(todo[first].iov_len, ahead_end_ - ahead_begin_);
    std::memcpy(todo[first].iov_base, ahead_.data() + ahead_begin_, n);
    ahead_begin_ += n;
    advance(todo, first, n);
  }
}

void SocketChannel::wake_for(int bytes) {
  if (std::exchange(wakes_for_, bytes) == bytes) return;
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

bool SocketChannel::wait_to_read(size_t wanted, TimePoint limit) {
  if (wanted >= size_t{kLot}) {
    wake_for(kLot);
    if (tcp::wait_for(fd_.get(), POLLIN, std::min(system_now() + kLotPatience, limit))) return true;
  }
  wake_for(1);
  return tcp::wait_for(fd_.get(), POLLIN, limit);
}

void SocketChannel::read_some(std::vector<iovec>& todo, size_t& first) {
  // Behind what is wanted comes the read-ahead, so that a header costs no call of its own.
  std::array<iovec, kMaxPieces> parts;
  const size_t count = std::min(todo.size() - first, kMaxPieces - 1);
  size_t wanted = 0;
  for (size_t i = 0; i < count; ++i) {
    parts[i] = todo[first + i];
    wanted += parts[i].iov_len;
  }
  const bool all = count == todo.size() - first;
  parts[count] = {ahead_.data(), all ? ahead_.size() : 0};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count + 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::timespec))> control;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const TimePoint limit = system_now() + silence_limit_;
  for (;;) {
    const ssize_t n = ::recvmsg(fd_.get(), &message, 0);
    if (n == 0) throw LinkClosed("the peer's process ended");
    if (n > 0) {
      const auto got = static_cast<size_t>(n);
      arrivals_.note(std::min(got, wanted), got > wanted, arrival_of(message), kernel_now());
      ahead_begin_ = 0;
      ahead_end_ = got > wanted ? got - wanted : 0;
      return advance(todo, first, std::min(got, wanted));
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_to_read(wanted, limit)) {
        throw LinkClosed("nothing was heard from the peer for " + in_words(silence_limit_));
      }
    } else if (errno != EINTR) {
      lost(errno);
    }
  }
}

}  // namespace

std::unique_ptr<Channel> make_socket_channel(FileDescriptor fd, Duration silence_limit) {
  return std::make_unique<SocketChannel>(std::move(fd), silence_limit);
}

}  // namespace outrigger::transport
