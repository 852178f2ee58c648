#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
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
/// what was handed out stays as it was.
template <typename T>
class Store {
 public:
  explicit Store(std::map<std::string, Indexer<T>> indexers) {
    for (auto& [name, indexer] : indexers) indexes_[name].indexer = std::move(indexer);
  }

  /// Null if there is none.
  CachedPtr<T> get(const ObjectKey& key) const {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(key.text());
    return found == objects_.end() ? nullptr : found->second;
  }

  /// All, in no order.
  std::vector<CachedPtr<T>> list() const {
    const std::scoped_lock lock(mutex_);
    std::vector<CachedPtr<T>> all;
    all.reserve(objects_.size());
    for (const auto& [key, object] : objects_) all.push_back(object);
    return all;
  }

  /// Those that the index shows under `value`, ordered by key. The index must exist.
  std::vector<CachedPtr<T>> by_index(const std::string& index, const std::string& value) const {
    const std::scoped_lock lock(mutex_);
    std::vector<CachedPtr<T>> found;
    const auto& entries = indexes_.at(index).entries;
    if (const auto keys = entries.find(value); keys != entries.end()) {
      for (const std::string& key : keys->second) found.push_back(objects_.at(key));
    }
    return found;
  }

  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return objects_.size();
  }

  /// Adds or replaces; returns what was there.
  CachedPtr<T> put(CachedPtr<T> object) {
    const std::scoped_lock lock(mutex_);
    const std::string key = object->key.text();
    CachedPtr<T>& slot = objects_[key];
    CachedPtr<T> former = std::exchange(slot, std::move(object));
    if (former) unindex(key, *former);
    for (auto& [name, index] : indexes_) {
      for (const std::string& value : index.indexer(*slot)) index.entries[value].insert(key);
    }
    return former;
  }

  /// Returns what was there.
  CachedPtr<T> remove(const ObjectKey& key) {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(key.text());
    if (found == objects_.end()) return nullptr;
    unindex(found->first, *found->second);
    CachedPtr<T> former = std::move(found->second);
    objects_.erase(found);
    return former;
  }

 private:
  struct Index {
    Indexer<T> indexer;
    std::unordered_map<std::string, std::set<std::string>> entries;  // value -> keys
  };

  void unindex(const std::string& key, const Cached<T>& object) {
    for (auto& [name, index] : indexes_) {
      for (const std::string& value : index.indexer(object)) {
        const auto entry = index.entries.find(value);
        if (entry == index.entries.end()) continue;
        entry->second.erase(key);
        if (entry->second.empty()) index.entries.erase(entry);
      }
    }
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::string, CachedPtr<T>> objects_;
  std::map<std::string, Index> indexes_;
};

}  // namespace outrigger::kube
