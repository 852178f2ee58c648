#pragma once

#include <deque>
#include <string>

#include "kube/object/resource.h"

namespace outrigger::kube {

/// Remembers the last objects that were deleted, so that a change which comes late does not bring
/// one back to life. Bounded.
class Tombstones {
 public:
  void add(const ObjectKey& key, const std::string& version);
  /// Whether `version` of `key` is from before a deletion that is remembered.
  bool is_older(const ObjectKey& key, const std::string& version) const;
  void clear() { last_.clear(); }

 private:
  struct Stone {
    ObjectKey key;
    std::string version;
  };
  std::deque<Stone> last_;
};

}  // namespace outrigger::kube
