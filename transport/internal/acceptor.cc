#include "transport/internal/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/log.h"
#include "transport/internal/signals.h"
#include "transport/internal/socket.h"

namespace outrigger::transport {
namespace {

/// While the process is out of descriptors, accepting again at once would only spin.
constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(100);
constexpr Duration kLogInterval = std::chrono::seconds(1);
constexpr Duration kIdle = std::chrono::seconds(60);

}  // namespace

Acceptor::Acceptor(const Address& address, std::string token, const ListenerOptions& options)
    : token_(std::move(token)),
      options_(options),
      listening_(listen_on(address)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      port_(local_port(listening_.get())) {
  if (token_.empty()) throw InvalidInput("the join token is empty");
  ensure(options_.max_pending > 0, "a port takes connections");
  if (!wake_) throw_errno("eventfd", errno);
  thread_ = std::thread([this] { run(); });
}

Acceptor::~Acceptor() {
  close();
  thread_.join();
}

void Acceptor::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    for (auto& queue : waiting_) queue.clear();
  }
  changed_.notify_all();
  ::eventfd_write(wake_.get(), 1);
}

std::optional<Connection> Acceptor::accept(Duration timeout, Visitor visitor) {
  std::unique_lock lock(mutex_);
  std::deque<Connection>& queue = waiting_[static_cast<size_t>(visitor)];
  changed_.wait_until(lock, system_now() + timeout, [&] { return closed_ || !queue.empty(); });
  if (closed_) throw Cancelled("the listener is closed");
  if (queue.empty()) return std::nullopt;
  const bool was_full = waiting_count() >= options_.max_waiting;
  Connection connection = std::move(queue.front());
  queue.pop_front();
  if (was_full) ::eventfd_write(wake_.get(), 1);
  return connection;
}

ListenerStats Acceptor::stats() const {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

bool Acceptor::is_full() const {
  const std::scoped_lock lock(mutex_);
  return waiting_count() >= options_.max_waiting;
}

Duration Acceptor::until_next_deadline(TimePoint time) const {
  TimePoint next = time + kIdle;
  if (!pending_.empty()) next = std::min(next, pending_.front().since + options_.handshake_limit);
  if (const TimePoint from = accepts_from(); from > time) next = std::min(next, from);
  return std::max(next - time, Duration(0));
}

TimePoint Acceptor::accepts_from() const {
  if (pending_.size() < options_.max_pending) return accept_again_;
  return std::max(accept_again_, pending_.front().since + options_.grace);
}

void Acceptor::run() {
  block_signals();
  std::vector<pollfd> polled;
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (closed_) break;
    }
    TimePoint time = system_now();
    const bool accepting = time >= accepts_from() && !is_full();
    polled.assign({{wake_.get(), POLLIN, 0}, {accepting ? listening_.get() : -1, POLLIN, 0}});
    for (const Pending& pending : pending_)
      polled.push_back({pending.connection.fd.get(), POLLIN, 0});
    const auto wait =
        std::chrono::ceil<std::chrono::milliseconds>(until_next_deadline(time)).count();
    if (::poll(polled.data(), polled.size(), static_cast<int>(wait)) < 0 && errno != EINTR) {
      log::error("the join port's poll failed with errno {}", errno);
    }
    eventfd_t ignored = 0;
    if (polled[0].revents != 0) ::eventfd_read(wake_.get(), &ignored);
    time = system_now();
    std::deque<Pending> kept;
    for (size_t i = 0; i < pending_.size(); ++i) {
      Pending& pending = pending_[i];
      if (polled[i + 2].revents != 0 && !serve(pending)) continue;
      if (time < pending.since + options_.handshake_limit) {
        kept.push_back(std::move(pending));
      } else {
        refuse(pending, "it did not prove the token in time");
      }
    }
    pending_ = std::move(kept);
    if (polled[1].revents != 0) accept_new(time);
  }
  pending_.clear();
  listening_.reset();
}

void Acceptor::accept_new(TimePoint time) {
  // A bounded number, so that a flood of connects does not keep the handshakes waiting.
  for (size_t i = 0; i < options_.max_pending && time >= accepts_from(); ++i) {
    FileDescriptor fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      add(std::move(fd), time);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log::error("no descriptor or memory left for a new connection (errno {})", errno);
      accept_again_ = time + kPauseWithoutDescriptors;
      return;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    }
  }
}

void Acceptor::add(FileDescriptor fd, TimePoint time) {
  if (pending_.size() >= options_.max_pending) {
    refuse(pending_.front(), "too many unproven connections, and it was the oldest");
    pending_.pop_front();
  }
  tune(fd.get());
  std::string peer = peer_name(fd.get());
  pending_.push_back({.connection = {std::move(fd), std::move(peer)},
                      .handshake = ServerHandshake(token_),
                      .received = {},
                      .since = time});
}

bool Acceptor::serve(Pending& pending) {
  const size_t have = pending.received.size();
  const size_t wanted = pending.handshake.wanted();
  pending.received.resize(wanted);
  const ssize_t n =
      ::recv(pending.connection.fd.get(), pending.received.data() + have, wanted - have, 0);
  pending.received.resize(have + static_cast<size_t>(std::max<ssize_t>(n, 0)));
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
  if (n <= 0) {
    refuse(pending, "it left in the handshake");
    return false;
  }
  return pending.received.size() < wanted || step(pending);
}

bool Acceptor::step(Pending& pending) {
  const ServerHandshake::Step step = pending.handshake.advance(pending.received);
  pending.received.clear();
  // A reply always fits into the empty buffer of a new socket.
  const int fd = pending.connection.fd.get();
  const bool sent = ::send(fd, step.reply.data(), step.reply.size(), MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(step.reply.size());
  if (step.fault || !sent) {
    refuse(pending, step.fault.value_or("it takes no reply"));
    return false;
  }
  if (!step.done) return true;
  pending.connection.purpose = pending.handshake.purpose();
  {
    const std::scoped_lock lock(mutex_);
    ++stats_.accepted;
    const bool is_rank = pending.connection.purpose == Purpose::kCollective;
    waiting_[is_rank ? 1 : 0].push_back(std::move(pending.connection));
  }
  changed_.notify_all();  // workers and ranks are waited for by different threads
  return false;
}

void Acceptor::refuse(const Pending& pending, const std::string& why) {
  {
    const std::scoped_lock lock(mutex_);
    ++stats_.refused;
  }
  const TimePoint time = system_now();
  if (time < last_logged_ + kLogInterval) {
    ++not_logged_;
    return;
  }
  const std::string more =
      not_logged_ == 0 ? ""
                       : " (and " + std::to_string(not_logged_) + " more since the last such line)";
  log::warning("refused a connection from {}: {}{}", pending.connection.peer, why, more);
  last_logged_ = time;
  not_logged_ = 0;
}

}  // namespace outrigger::transport
