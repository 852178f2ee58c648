#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>

namespace outrigger::http {

/// A peer's socket, as the library that serves reads and writes it. That library keeps what comes
/// without a bound of its own: lines of any length, and as many as come. So the bound is here. Not
/// thread-safe; does not own the socket.
class ServerStream final : public httplib::Stream {
 public:
  /// A head larger than this is cut off: the library answers 400 then. Four times of what it takes
  /// as a line.
  static constexpr size_t kLargestHead = 32 << 10;

  struct Limits {
    std::chrono::milliseconds silence;  // for each read and write
    size_t body;                        // behind the head no more is read
  };
  ServerStream(int socket, const Limits& limits) : socket_(socket), limits_(limits) {}

  /// Whether something to read comes, or is there, before the time is over.
  bool is_readable() const override;
  bool is_writable() const override;
  /// As of recv(): -1 where nothing comes in time or a limit is reached.
  ssize_t read(char* into, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return socket_; }

 private:
  size_t left() const;
  void follow_head(const char* bytes, size_t count);

  const int socket_;
  const Limits limits_;
  std::array<char, 4096> buffer_{};  // the library asks for a head byte by byte
  size_t begin_ = 0;                 // of what came and was not read
  size_t end_ = 0;
  size_t taken_ = 0;     // by the library: of the head, then of the body
  size_t of_blank_ = 0;  // how much of the head's end has come: LF, CR, LF
  bool in_body_ = false;
};

}  // namespace outrigger::http
