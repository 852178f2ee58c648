#include "kube/client/sender.h"

#include <array>

#include "common/error.h"
#include "common/log.h"
#include "kube/client/api_error.h"

namespace outrigger::kube {
namespace {

http::ClientOptions connection_options(const ClientOptions& from) {
  http::ClientOptions options;
  options.timeout = from.timeout;
  options.max_body = from.max_body;
  options.headers = {{"User-Agent", from.user_agent}};
  return options;
}

// kubernetes.io, API concepts, "Metadata-only fetches".
std::string_view accepted(const Sender::Message& message) {
  if (message.form == Form::kWhole) return "Accept: application/json\r\n";
  if (message.verb == "LIST")
    return "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
           "application/json\r\n";
  return "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
         "application/json\r\n";
}

// What a message has beside its own fields, valid as long as `access` is.
std::array<std::string_view, 2> dress(const Sender::Message& message,
                                      const Endpoint::Access& access) {
  return {accepted(message), *access.authorization};
}

// A place inside a gate for as long as this lives.
class Place {
 public:
  Place(Gate& gate, const std::stop_token& stop) : gate_(gate) { gate_.enter(stop); }
  ~Place() { gate_.leave(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  Gate& gate_;
};

std::optional<std::chrono::seconds> retry_after(const http::Response& response) {
  if (!http::find_header(response.headers, "Retry-After")) return std::nullopt;
  return ApiError::from("", response).retry_after();
}

}  // namespace

void Gate::enter(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return free_ > 0; }))
    throw Cancelled("waiting to send a request: stopped");
  --free_;
}

void Gate::leave() {
  {
    const std::scoped_lock lock(mutex_);
    ++free_;
  }
  changed_.notify_one();
}

Sender::Sender(const Config& config, ClientOptions options, std::stop_token stop)
    : options_(std::move(options)),
      stop_(std::move(stop)),
      endpoint_(config, connection_options(options_), *options_.timer),
      gate_(options_.in_flight) {}

Observer::Request Sender::observed(const Message& message, int status, TimePoint since) const {
  return {message.verb, endpoint_.host(), status == 0 ? "<error>" : std::to_string(status),
          options_.timer->now() - since};
}

Sender::Try Sender::try_once(const Message& message) {
  const Place place(gate_, stop_);
  const Endpoint::Access access = endpoint_.access();
  const TimePoint since = options_.timer->now();
  try {
    Try result{access.client->send(message.request, dress(message, access), stop_),
               access.authorization};
    options_.observer->request_finished(observed(message, result.response.status, since));
    return result;
  } catch (const IoError&) {
    options_.observer->request_finished(observed(message, 0, since));
    throw;
  }
}

bool Sender::wait_to_retry(const Message& message, const RetryPolicy::Failure& failure, int tries) {
  const auto wait = options_.retry.wait(failure, tries, random_chance());
  if (!wait) return false;
  options_.observer->request_retried(observed(message, failure.code, options_.timer->now()));
  if (!options_.timer->sleep(*wait, stop_))
    throw Cancelled(message.request.method + " " + message.request.target + ": stopped");
  return true;
}

http::Response Sender::send(const Message& message) {
  bool token_renewed = false;
  for (int tries = 1;; ++tries) {
    RetryPolicy::Failure failure{.idempotent = message.idempotent};
    try {
      Try result = try_once(message);
      http::Response& response = result.response;
      if (response.status == 401 && !token_renewed &&
          endpoint_.token_changed(*result.authorization)) {
        token_renewed = true;
        continue;
      }
      if (response.status != 429 && response.status / 100 != 5) return std::move(response);
      failure.code = response.status;
      failure.retry_after = retry_after(response);
      if (!wait_to_retry(message, failure, tries)) return std::move(response);
    } catch (const http::TooLarge&) {
      throw;
    } catch (const IoError& error) {
      if (!wait_to_retry(message, failure, tries)) throw;
      log::debug("trying again: {}", error.what());
    }
  }
}

http::Response Sender::stream(const Message& message, const http::StreamLimits& limits,
                              const http::Client::Receiver& receiver, const std::stop_token& stop) {
  const Endpoint::Access access = endpoint_.access();
  const TimePoint since = options_.timer->now();
  bool told = false;
  const auto tell = [&](int status) {
    if (!std::exchange(told, true))
      options_.observer->request_finished(observed(message, status, since));
  };
  try {
    http::Response response = access.client->stream(
        message.request, dress(message, access), limits,
        [&](std::string_view piece) {
          tell(200);
          return receiver(piece);
        },
        stop);
    tell(response.status);
    // The next try shows the new token, if there is one.
    if (response.status == 401) endpoint_.token_changed(*access.authorization);
    return response;
  } catch (const IoError&) {
    tell(0);
    throw;
  }
}

}  // namespace outrigger::kube
