#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kube/client/client.h"

namespace outrigger::kube {

enum class ChangeType { kAdded, kModified, kDeleted };

/// One event of a watch.
struct Change {
  ChangeType type;
  Json object;
  /// What WatchOptions::known said of it; then `object` has no spec and no status.
  std::shared_ptr<const void> known = nullptr;
};

/// What a line of a watch stream says (kubernetes.io, API concepts, "Efficient detection of
/// changes").
struct WatchLine {
  enum class Kind { kChange, kBookmark, kError };
  Kind kind;
  ChangeType type = ChangeType::kAdded;
  Json object;  // of an error: its Status
};

/// Throws IoError where the line is no event.
WatchLine parse_watch_line(std::string_view line, const std::vector<DroppedField>& dropped,
                           std::span<const KeptFields> kept = {});

struct WatchOptions {
  Resource resource;
  Selection selection = {};
  /// Changes after this version are told.
  std::string resource_version;
  /// The server is asked to end the watch after a time drawn from this range, so that watches do
  /// not all come back at once and move to a new server some day.
  std::chrono::seconds shortest{300};
  std::chrono::seconds longest{600};
  /// Nothing came for so long: the connection is half open. API servers send a bookmark about every
  /// minute; where one does not, a quiet watch is merely made anew from where it stood.
  std::chrono::milliseconds silence{150'000};
  std::vector<DroppedField> dropped = kManagedFields;
  std::vector<KeptFields> kept = {};
  /// Where changes come by the hundred, those of so long are read at once; one by itself is told as
  /// it comes.
  std::chrono::milliseconds gather{25};
  /// Asked with every object that was modified, without its spec and status, before these are read:
  /// what is known already, if it is. Then they are passed over. Absent: nothing is known.
  std::function<std::shared_ptr<const void>(const Json& head)> known = {};
  size_t longest_line = size_t{16} << 20;
};

struct WatchEnd {
  enum class Why {
    kEnded,    // the server's time was up, or the connection broke: go on from resource_version
    kExpired,  // 410, an ERROR event, or what cannot be understood: list again
    kRefused   // the server would not start it; see error
  };
  Why why;
  std::string resource_version;  // the last that was told
  std::optional<ApiError> error = std::nullopt;
  std::string reason = {};  // for the log
};

/// Watches until the stream ends, on the caller's thread, calling `change` in the server's order.
/// Memory is bounded by the longest line. Throws Cancelled once `stop` is requested; exceptions of
/// `change` end the watch and come out here.
WatchEnd watch(Client& client, const WatchOptions& options,
               const std::function<void(Change)>& change, const std::stop_token& stop);

}  // namespace outrigger::kube
