#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kube/object/json.h"
#include "kube/object/resource.h"

namespace outrigger::fakes {

using kube::Json;
using kube::ObjectKey;

/// A request's path, taken apart.
struct ApiPath {
  std::string collection;  // "apps/v1/deployments", "/v1/pods"
  std::string plural;
  std::string api_version;
  ObjectKey key;  // name empty: the collection
  std::string subresource;

  static std::optional<ApiPath> parse(const std::string& path);
};

/// Which objects a list or watch is about.
struct ApiSelection {
  std::string ns;
  std::string labels;
  std::string fields;

  bool matches(const Json& object) const;
};

/// What an API server keeps: objects, their versions and a history, with the rules that controllers
/// meet every day (conflicts, preconditions, finalizers, expired versions). Thread-safe.
class ApiStore {
 public:
  struct Answer {
    int status = 200;
    Json body;
  };
  struct Change {
    uint64_t version;
    Json before;  // null: was not there
    Json after;   // null: is gone; `last` is what it was, with the deletion's version
    Json last;
  };

  Answer get(const ApiPath& path) const;
  Answer list(const ApiPath& path, const ApiSelection& selection, size_t limit,
              const std::string& continue_token) const;
  Answer create(const ApiPath& path, Json object, bool dry_run = false);
  Answer update(const ApiPath& path, Json object);
  Answer patch(const ApiPath& path, const Json& patch, const std::string& content_type);
  Answer remove(const ApiPath& path, const Json& options);

  /// The changes of a collection after `version`; nothing if that is no longer known (410).
  std::optional<std::vector<Change>> changes_after(const std::string& collection,
                                                   uint64_t version) const;
  uint64_t version() const;
  /// Forgets the history, as etcd's compaction does.
  void compact();
  /// Versions begin anew, as after a restore from a backup.
  void rewind_versions(uint64_t to);

  static Answer error(int status, const std::string& reason, const std::string& message);

 private:
  using Objects = std::map<ObjectKey, Json>;

  Answer store(const ApiPath& path, Json object, const Json& before);
  const Json* find(const ApiPath& path) const;
  Answer replace(const ApiPath& path, const Json& before, Json object);

  mutable std::mutex mutex_;
  std::map<std::string, Objects> collections_;
  std::map<std::string, std::vector<Change>> history_;
  uint64_t version_ = 100;
  uint64_t compacted_ = 0;
  uint64_t next_uid_ = 1;
};

}  // namespace outrigger::fakes
