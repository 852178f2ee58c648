#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "common/error.h"

namespace outrigger {

/// A map whose entries lie side by side, in the order of their keys: for few entries, or many that
/// are gone through far more often than they come and go, as each of those moves all behind it.
/// Named as in std::flat_map (C++23). Adding or removing one makes iterators and references
/// invalid. Not thread-safe.
template <typename Key, typename Value>
class FlatMap {
 public:
  using value_type = std::pair<Key, Value>;
  using iterator = typename std::vector<value_type>::iterator;
  using const_iterator = typename std::vector<value_type>::const_iterator;

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }

  iterator find(const Key& key) { return found(not_before(entries_, key), key); }
  const_iterator find(const Key& key) const { return found(not_before(entries_, key), key); }
  bool contains(const Key& key) const { return find(key) != end(); }

  /// The key must be there.
  Value& at(const Key& key) {
    const auto place = find(key);
    ensure(place != end(), "the key is there");
    return place->second;
  }
  const Value& at(const Key& key) const {
    const auto place = find(key);
    ensure(place != end(), "the key is there");
    return place->second;
  }
  /// Adds an empty value where the key is new.
  Value& operator[](const Key& key) { return emplace(key, Value{}).first->second; }
  /// Adds the value where the key is new; else changes nothing.
  std::pair<iterator, bool> emplace(const Key& key, Value value) {
    const auto place = not_before(entries_, key);
    if (place != end() && place->first == key) return {place, false};
    return {entries_.insert(place, value_type(key, std::move(value))), true};
  }

  iterator erase(const_iterator place) { return entries_.erase(place); }
  /// How many were removed: 0 or 1.
  size_t erase(const Key& key) {
    const auto place = find(key);
    if (place == end()) return 0;
    entries_.erase(place);
    return 1;
  }

 private:
  template <typename Entries>
  static auto not_before(Entries& entries, const Key& key) {
    return std::ranges::lower_bound(entries, key, std::less<>(), &value_type::first);
  }
  iterator found(iterator place, const Key& key) {
    return place != end() && place->first == key ? place : end();
  }
  const_iterator found(const_iterator place, const Key& key) const {
    return place != end() && place->first == key ? place : end();
  }

  std::vector<value_type> entries_;
};

}  // namespace outrigger
