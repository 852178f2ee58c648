#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/file.h"
#include "transport/address.h"
#include "transport/endpoint.h"
#include "transport/handshake.h"

namespace outrigger::transport {

/// Who waits for a connection.
enum class Visitor : size_t { kWorker = 0, kRank = 1 };

/// An authenticated connection.
struct Connection {
  FileDescriptor fd;
  std::string peer;
  Purpose purpose = Purpose::kSocketLink;
};

/// Listens on one port and does the server's half of the handshake, for all who connect at once, on
/// one thread that never waits for any of them: strangers, garbage and half-open connections cost a
/// bounded number of descriptors.
class Acceptor {
 public:
  Acceptor(const Address& address, std::string token, const ListenerOptions& options);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  uint16_t port() const { return port_; }
  /// Nothing after `timeout`; throws Cancelled once closed.
  std::optional<Connection> accept(Duration timeout, Visitor visitor = Visitor::kWorker);
  void close();
  ListenerStats stats() const;

 private:
  struct Pending {
    Connection connection;
    ServerHandshake handshake;
    Bytes received;
    TimePoint since;
  };

  void run();
  Duration until_next_deadline(TimePoint now) const;
  /// Before, newcomers stay in the kernel's queue.
  TimePoint accepts_from() const;
  void accept_new(TimePoint now);
  void add(FileDescriptor fd, TimePoint now);
  /// False: it is to be dropped, or has moved on to those who wait.
  bool serve(Pending& pending);
  bool step(Pending& pending);
  void refuse(const Pending& pending, const std::string& why);
  bool is_full() const;
  size_t waiting_count() const { return waiting_[0].size() + waiting_[1].size(); }

  const std::string token_;
  const ListenerOptions options_;
  FileDescriptor listening_;
  FileDescriptor wake_;
  const uint16_t port_;
  std::deque<Pending> pending_;  // the thread's, as all until mutex_; oldest first
  TimePoint accept_again_{};
  TimePoint last_logged_{};
  uint64_t not_logged_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::deque<Connection>, 2> waiting_;  ///< by Visitor
  ListenerStats stats_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace outrigger::transport
