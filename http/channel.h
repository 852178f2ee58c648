#pragma once

#include <chrono>
#include <mutex>
#include <span>
#include <string_view>

#include "common/clock.h"
#include "common/file.h"
#include "common/tcp.h"
#include "http/server_address.h"
#include "http/tls.h"

namespace outrigger::http {

/// Bytes to and from a server, through TLS where there is a context for it. One thread at a time
/// uses it; break_off() may be called from any thread at any moment.
class Channel {
 public:
  /// Does not connect.
  Channel(ServerAddress address, std::shared_ptr<const TlsContext> tls);

  /// Tries the host's addresses in their order, each with its share of the time that is left.
  /// Throws IoError where the server is not reached within `time` or is not the one that is wanted.
  void connect(std::chrono::milliseconds time);
  /// The same to what the host's name stands for; one address at least.
  void connect(std::span<const tcp::SocketAddress> candidates, std::chrono::milliseconds time);
  /// All of it. Throws IoError where it is not taken.
  void write(std::string_view bytes, std::chrono::milliseconds silence);
  /// What is there, at least a byte; 0 at the end. Throws IoError where nothing comes for
  /// `silence`, and where the connection breaks.
  size_t read(std::span<char> into, std::chrono::milliseconds silence);

  /// Connected, and the server has neither closed it nor said anything that nobody asked for.
  bool idle() const;
  /// Keeps no buffers of TLS records while nothing comes, 34 KiB each.
  void keep_no_buffers();
  /// Ends what is under way with an IoError, and everything later.
  void break_off();

 private:
  void try_address(const tcp::SocketAddress& address, TimePoint deadline);
  void adopt(FileDescriptor socket);
  void limit(int option, std::chrono::milliseconds time, std::chrono::milliseconds& now) const;

  const ServerAddress address_;
  const std::shared_ptr<const TlsContext> tls_;
  std::mutex mutex_;  // guards what another thread may shut down
  FileDescriptor socket_;
  bool broken_ = false;
  TlsSession session_;  // null: no TLS, or not connected
  std::chrono::milliseconds read_limit_{0};
  std::chrono::milliseconds write_limit_{0};
};

}  // namespace outrigger::http
