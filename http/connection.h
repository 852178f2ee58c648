#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "http/channel.h"
#include "http/client.h"
#include "http/response_parser.h"

namespace outrigger::http {

/// One connection, which a stop request can break from another thread at any moment, also while it
/// is being made. It carries one request after the other (RFC 9112). Not thread-safe but for that.
class Connection {
 public:
  /// What it is for. One that waits keeps no buffers of records meanwhile, 34 KiB each; one for
  /// requests, which come one after the other, would make them anew for each.
  enum class Use : uint8_t { kRequests, kWaiting };

  /// How a response is read: `silence` bounds each wait for more, `whole` all of them from the
  /// request on: a head can come as slowly as a body; `gather` as in StreamLimits.
  struct Pace {
    std::chrono::milliseconds silence;
    std::chrono::milliseconds whole;
    std::chrono::milliseconds gather{0};
  };

  Connection(const ServerAddress& address, const ClientOptions& options,
             std::shared_ptr<const TlsContext> tls, Use use);

  /// Sends and receives, and connects where that is to be done; the body goes to `receiver`. Throws
  /// InvalidInput where a field or the target holds what none may, IoError with the cause where no
  /// whole response comes.
  Response send(const ClientRequest& request, FieldLines more, const Pace& pace,
                const ResponseParser::Receiver& receiver, const std::stop_token& stop);
  /// Whether another request may be sent on it, as far as the last response says.
  bool usable() const { return usable_; }
  /// Whether the server has not closed it since.
  bool alive() const { return channel_.idle(); }

 private:
  void connect();
  std::string written(const ClientRequest& request, FieldLines more) const;
  void receive(ResponseParser& parser, const Pace& pace, const std::stop_token& stop);
  void make_room();
  void let_gather(std::chrono::milliseconds time, const std::stop_token& stop) const;

  const ClientOptions& options_;
  const std::string host_;
  const Use use_;
  Channel channel_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what came and was not read
  size_t end_ = 0;
  TimePoint came_{};  // when something came last
  bool connected_ = false;
  bool usable_ = false;
};

}  // namespace outrigger::http
