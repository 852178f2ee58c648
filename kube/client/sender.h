#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "http/client.h"
#include "kube/client/config.h"
#include "kube/client/endpoint.h"
#include "kube/client/options.h"

namespace outrigger::kube {

/// Lets at most so many through at once. Thread-safe.
class Gate {
 public:
  explicit Gate(int places) : free_(places) {}
  /// Throws Cancelled once `stop` is requested.
  void enter(const std::stop_token& stop);
  void leave();

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int free_;
};

/// Sends one request until there is an answer worth having: bounds what is in flight, shows the
/// token, tries again, tells the observer. The inside of Client; thread-safe.
class Sender {
 public:
  struct Message {
    std::string verb;  // for metrics: LIST and GET differ
    http::ClientRequest request;
    bool idempotent = false;
    Form form = Form::kWhole;
  };

  Sender(const Config& config, ClientOptions options, std::stop_token stop);

  /// The last answer, whatever its status. IoError, Cancelled.
  http::Response send(const Message& message);
  /// One try; the body of a success goes to `receiver`.
  http::Response stream(const Message& message, const http::StreamLimits& limits,
                        const http::Client::Receiver& receiver, const std::stop_token& stop);

  const ClientOptions& options() const { return options_; }

 private:
  struct Try {
    http::Response response;
    std::shared_ptr<const std::string> authorization;  // that was shown
  };
  Try try_once(const Message& message);
  Observer::Request observed(const Message& message, int status, TimePoint since) const;
  bool wait_to_retry(const Message& message, const RetryPolicy::Failure& failure, int tries);

  const ClientOptions options_;
  const std::stop_token stop_;
  Endpoint endpoint_;
  Gate gate_;
};

}  // namespace outrigger::kube
