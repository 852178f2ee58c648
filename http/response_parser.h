#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "http/message.h"

namespace outrigger::http {

/// Reads one response (HTTP/1.0 or 1.1, RFC 9112) of a stream of bytes; interim ones (1xx) before
/// it are passed over. Not thread-safe.
class ResponseParser {
 public:
  /// Takes a piece of the body; false: wants no more. The head is complete by then.
  using Receiver = std::function<bool(const Response& head, std::string_view piece)>;

  explicit ResponseParser(Receiver receiver);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Reads on; tells how many bytes it is through with. The others come first the next time, with
  /// more behind them. Throws IoError for what is no HTTP, and for a head of more than 64 KiB.
  size_t feed(std::string_view bytes);
  /// Nothing comes any more. Throws IoError where the response is not complete.
  void finish();

  /// Complete, or the receiver wanted no more.
  bool done() const;
  /// Complete, and the connection may carry another request.
  bool keeps_connection() const;
  /// Status and fields; the body went to the receiver.
  Response& head();

 private:
  class Impl;
  Receiver receiver_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrigger::http
