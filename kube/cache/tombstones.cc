#include "kube/cache/tombstones.h"

#include <algorithm>

#include "kube/object/object.h"

namespace outrigger::kube {
namespace {

constexpr size_t kMost = 128;

}  // namespace

void Tombstones::add(const ObjectKey& key, const std::string& version) {
  if (last_.size() == kMost) last_.pop_front();
  last_.push_back({key, version});
}

bool Tombstones::is_older(const ObjectKey& key, const std::string& version) const {
  return std::any_of(last_.begin(), last_.end(), [&](const Stone& stone) {
    return stone.key == key && is_older_version(version, stone.version);
  });
}

}  // namespace outrigger::kube
