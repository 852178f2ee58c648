#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace outrigger {

/// A text that many values have in common, such as the node of many pods: all that are equal are
/// one, which lives as long as any of them. Making one from a text looks for it among all; copies
/// cost a count. Thread-safe as a std::string is.
class SharedText {
 public:
  SharedText() = default;  ///< the empty text, which takes no memory
  SharedText(std::string_view text);
  SharedText(const std::string& text) : SharedText(std::string_view(text)) {}

  const std::string& get() const;
  operator const std::string&() const { return get(); }
  bool operator==(const SharedText&) const = default;
  bool operator==(const std::string& text) const { return get() == text; }

  /// How many different ones there are now, but for the empty one.
  static size_t count();

 private:
  std::shared_ptr<const std::string> text_;  // null: empty
};

}  // namespace outrigger
