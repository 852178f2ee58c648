#pragma once

#include <optional>
#include <stop_token>

#include "kube/cache/watch.h"
#include "kube/client/client.h"
#include "kube/client/retry.h"

namespace outrigger::kube {

/// Takes what a reflector sees. Called on the reflector's thread, one call at a time.
class ReflectorSink {
 public:
  virtual ~ReflectorSink() = default;

  /// A list begins; also when one is begun anew half way.
  virtual void list_begins() = 0;
  virtual void list_item(Json object) = 0;
  /// What was not among the items is no longer there.
  virtual void list_ends() = 0;
  virtual void change(Change change) = 0;
};

struct ReflectorOptions {
  Resource resource;
  Selection selection = {};
  std::vector<DroppedField> dropped = kManagedFields;
  std::vector<KeptFields> kept = {};
  /// As WatchOptions::known.
  std::function<std::shared_ptr<const void>(const Json& head)> known = {};
  int chunk = 500;
  /// The API server need not know the resource, or not yet: that it refuses to list it is not worth
  /// a warning.
  bool may_be_absent = false;
  /// After a list or watch that failed.
  BackOff back_off{std::chrono::milliseconds(500), std::chrono::seconds(30)};
  /// Ranges of a watch, see WatchOptions.
  std::chrono::seconds shortest_watch{300};
  std::chrono::seconds longest_watch{600};
  std::chrono::milliseconds silence{150'000};
  /// As WatchOptions::gather.
  std::chrono::milliseconds gather{25};
};

/// Keeps a sink up to date with the API server: lists, watches from there, watches again from where
/// it was when a watch ends, lists again when that version is gone. Nothing is lost between.
class Reflector {
 public:
  Reflector(Client& client, ReflectorOptions options);

  /// Until `stop` is requested. Failures are logged and tried again for ever, with back-off.
  void run(ReflectorSink& sink, const std::stop_token& stop);

 private:
  /// The API server's refusal, if it is one.
  std::optional<ApiError> list(ReflectorSink& sink);
  void follow(ReflectorSink& sink, const std::stop_token& stop);
  WatchEnd watch_once(ReflectorSink& sink, const std::stop_token& stop);
  /// As long as the back-off says, or as the server asks for with its refusal, within bounds.
  void pause(const std::string& why, const std::optional<ApiError>& refusal,
             const std::stop_token& stop);

  Client& client_;
  const ReflectorOptions options_;
  std::string version_;
  int failures_ = 0;  // in a row
};

}  // namespace outrigger::kube
