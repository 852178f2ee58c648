#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kube/object/resource.h"

namespace outrigger::kube {

/// An object as a cache keeps it: who it is, and what its user made of it. Immutable.
template <typename T>
struct Cached {
  ObjectKey key;
  std::string uid;
  std::string resource_version;
  T value;
};

template <typename T>
using CachedPtr = std::shared_ptr<const Cached<T>>;

/// The values under which an index shows an object: its node's name, its owner's UID.
template <typename T>
using Indexer = std::function<std::vector<std::string>(const Cached<T>&)>;

/// Objects by key, and by as many indexes as wanted. Thread-safe: an informer writes, anyone reads;
/// what was handed out stays as it was. Keys are not kept beside the objects, which have them.
template <typename T>
class Store {
 public:
  explicit Store(std::map<std::string, Indexer<T>> indexers) {
    for (auto& [name, indexer] : indexers) indexes_[name].indexer = std::move(indexer);
  }

  /// Null if there is none.
  CachedPtr<T> get(const ObjectKey& key) const {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : *found;
  }

  /// All, in no order.
  std::vector<CachedPtr<T>> list() const {
    const std::scoped_lock lock(mutex_);
    return {objects_.begin(), objects_.end()};
  }

  /// Those that the index shows under `value`, ordered by key. The index must exist.
  std::vector<CachedPtr<T>> by_index(const std::string& index, const std::string& value) const {
    const std::scoped_lock lock(mutex_);
    const auto& entries = indexes_.at(index).entries;
    const auto found = entries.find(value);
    return found == entries.end() ? std::vector<CachedPtr<T>>{} : found->second;
  }

  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return objects_.size();
  }

  /// Adds or replaces; returns what was there.
  CachedPtr<T> put(CachedPtr<T> object) {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(object->key);
    CachedPtr<T> former = found == objects_.end() ? nullptr : *found;
    for (auto& [name, index] : indexes_) index.put(former, object);
    if (former) {
      auto place = objects_.extract(found);
      place.value() = std::move(object);
      objects_.insert(std::move(place));
    } else {
      objects_.insert(std::move(object));
    }
    return former;
  }

  /// Returns what was there.
  CachedPtr<T> remove(const ObjectKey& key) {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) return nullptr;
    CachedPtr<T> former = *found;
    objects_.erase(found);
    for (auto& [name, index] : indexes_) index.remove(former, index.indexer(*former));
    return former;
  }

 private:
  struct Index {
    Indexer<T> indexer;
    std::unordered_map<std::string, std::vector<CachedPtr<T>>> entries;  // each ordered by key

    // In the place of `former`, if there is one, where that is shown under the same values.
    void put(const CachedPtr<T>& former, const CachedPtr<T>& object) {
      const std::vector<std::string> values = indexer(*object);
      if (former) {
        const std::vector<std::string> before = indexer(*former);
        if (before != values) remove(former, before);
      }
      for (const std::string& value : values) {
        auto& entry = entries[value];
        const auto place = place_of(entry, object->key);
        if (place != entry.end() && (*place)->key == object->key) {
          *place = object;
        } else {
          entry.insert(place, object);
        }
      }
    }

    void remove(const CachedPtr<T>& object, const std::vector<std::string>& values) {
      for (const std::string& value : values) {
        const auto entry = entries.find(value);
        if (entry == entries.end()) continue;
        auto& objects = entry->second;
        const auto place = place_of(objects, object->key);
        if (place != objects.end() && *place == object) objects.erase(place);
        if (objects.empty()) entries.erase(entry);
      }
    }
  };

  // A key is looked up among objects without making one.
  static const ObjectKey* key_of(const ObjectKey& key) { return &key; }
  static const ObjectKey* key_of(const CachedPtr<T>& object) { return &object->key; }
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's word
    size_t operator()(const auto& item) const {
      constexpr size_t kSpread = 0x9e3779b97f4a7c15;
      const ObjectKey& key = *key_of(item);
      return std::hash<std::string>()(key.name) + kSpread * std::hash<std::string>()(key.ns);
    }
  };
  struct SameKey {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's word
    bool operator()(const auto& a, const auto& b) const { return *key_of(a) == *key_of(b); }
  };

  static auto place_of(std::vector<CachedPtr<T>>& entry, const ObjectKey& key) {
    return std::lower_bound(
        entry.begin(), entry.end(), key,
        [](const auto& object, const auto& wanted) { return object->key < wanted; });
  }

  mutable std::mutex mutex_;
  std::unordered_set<CachedPtr<T>, Hash, SameKey> objects_;
  std::map<std::string, Index> indexes_;
};

}  // namespace outrigger::kube
