#include "common/shared_text.h"

#include <mutex>
#include <unordered_map>

namespace outrigger {
namespace {

using TextPtr = std::shared_ptr<const std::string>;

/// All texts that somebody has, under views of themselves.
class Pool {
 public:
  TextPtr find_or_add(std::string_view text) {
    TextPtr added;  // goes after the lock, should anything throw
    const std::scoped_lock lock(mutex_);
    if (const auto found = texts_.find(text); found != texts_.end()) {
      if (auto known = found->second.lock()) return known;
      texts_.erase(found);  // its last owner is about to take it out: the view is of its text
    }
    added = TextPtr(new std::string(text), [this](const std::string* gone) { remove(gone); });
    texts_.emplace(*added, added);
    return added;
  }

  size_t count() const {
    const std::scoped_lock lock(mutex_);
    return texts_.size();
  }

 private:
  void remove(const std::string* gone) {
    {
      const std::scoped_lock lock(mutex_);
      // There may be a new one by now.
      const auto found = texts_.find(*gone);
      if (found != texts_.end() && found->second.expired()) texts_.erase(found);
    }
    delete gone;
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, std::weak_ptr<const std::string>> texts_;
};

// Never destroyed: texts of other statics may be given back after this would be.
Pool& pool() {
  static Pool& all = *new Pool;
  return all;
}

}  // namespace

SharedText::SharedText(std::string_view text)
    : text_(text.empty() ? nullptr : pool().find_or_add(text)) {}

const std::string& SharedText::get() const {
  static const std::string empty;
  return text_ ? *text_ : empty;
}

size_t SharedText::count() { return pool().count(); }

}  // namespace outrigger
