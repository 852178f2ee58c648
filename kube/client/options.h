#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "kube/client/retry.h"
#include "kube/object/json.h"
#include "kube/observer.h"
#include "kube/timer.h"

namespace outrigger::kube {

struct ClientOptions {
  /// Who speaks: the API server's audit log and managedFields show it.
  std::string user_agent = "outrigger";
  /// For one answer; a watch has limits of its own.
  std::chrono::milliseconds timeout{30'000};
  /// Requests sent at once; more wait for their turn. Watches do not count.
  int in_flight = 64;
  /// Fields of single objects in answers that are never built; a list is told its own.
  std::vector<DroppedField> dropped = {};
  /// A larger answer is an error (http::TooLarge); a list is asked for in smaller chunks then.
  size_t max_body = size_t{64} << 20;
  RetryPolicy retry = {};
  const Timer* timer = &Timer::system();
  Observer* observer = &Observer::none();
};

/// How much of an object the server answers with. Metadata alone (a PartialObjectMetadata) is less
/// to send and to read; a server that cannot do that answers with the whole object. Nothing is for
/// the answer to a write of which nobody asks more than whether it was done: metadata is asked for,
/// and not read.
enum class Form { kWhole, kMetadata, kNothing };

}  // namespace outrigger::kube
