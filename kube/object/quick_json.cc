#include "kube/object/quick_json.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

namespace outrigger::kube {
namespace {

constexpr int kDeepest = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_unescaped(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

std::optional<char> unescape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    default:
      return std::nullopt;
  }
}

/// Recursive descent over one text. Every function returns false where the text is not for it.
class QuickParser {
 public:
  QuickParser(std::string_view text, const FieldFilter& filter)
      : at_(text.data()), end_(text.data() + text.size()), filter_(filter) {}

  std::optional<Json> parse() {
    Json result;
    if (!value(result, {}, 0)) return std::nullopt;
    space();
    if (at_ != end_) return std::nullopt;
    return result;
  }

 private:
  void space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool take(char c) {
    space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool word(std::string_view name) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(name)) return false;
    at_ += name.size();
    return true;
  }

  // `name` is the key under which the value stands; empty in a list.
  bool value(Json& into, std::string_view name, int depth) {
    space();
    if (at_ == end_ || depth > kDeepest) return false;
    switch (*at_) {
      case '{':
        return object(into, name, depth);
      case '[':
        return list(into, depth);
      case '"': {
        std::string text;
        if (!string(text)) return false;
        into = std::move(text);
        return true;
      }
      case 't':
        into = true;
        return word("true");
      case 'f':
        into = false;
        return word("false");
      case 'n':
        into = nullptr;
        return word("null");
      default:
        return number(into);
    }
  }

  bool object(Json& into, std::string_view name, int depth) {
    ++at_;
    into = Json::object();
    auto& members = into.get_ref<Json::object_t&>();
    if (take('}')) return true;
    std::string room;
    do {
      space();
      std::string_view key;
      if (!read_key(key, room) || !take(':')) return false;
      if (depth > 0 && !filter_.passes(name, key)) {
        if (!skip()) return false;
        continue;
      }
      const auto member = members.try_emplace(std::string(key)).first;
      if (!value(member->second, member->first, depth + 1)) return false;
    } while (take(','));
    return take('}');
  }

  bool list(Json& into, int depth) {
    ++at_;
    into = Json::array();
    auto& elements = into.get_ref<Json::array_t&>();
    if (take(']')) return true;
    do {
      if (!value(elements.emplace_back(), {}, depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  // A key as it stands in the text; one with escapes is made in `room`. Most keys are of fields
  // that are passed over, and no string is made for them.
  bool read_key(std::string_view& key, std::string& room) {
    if (at_ == end_ || *at_ != '"') return false;
    const char* begin = at_ + 1;
    const char* stop = begin;
    while (stop != end_ && is_unescaped(*stop)) ++stop;
    if (stop != end_ && *stop == '"') {
      at_ = stop + 1;
      key = {begin, stop};
      return true;
    }
    room.clear();
    const bool read = string(room);
    key = room;
    return read;
  }

  bool string(std::string& into) {
    if (at_ == end_ || *at_ != '"') return false;
    const char* begin = ++at_;
    while (at_ != end_) {
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') {
        into.append(begin, at_++);
        return true;
      }
      if (c < 0x20 || c >= 0x80) return false;
      if (c == '\\') {
        into.append(begin, at_++);
        if (!escape(into)) return false;
        begin = at_;
      } else {
        ++at_;
      }
    }
    return false;
  }

  bool escape(std::string& into) {
    if (at_ == end_) return false;
    if (*at_ == 'u') {
      unsigned code = 0;
      if (end_ - at_ < 5) return false;
      const auto [stop, error] = std::from_chars(at_ + 1, at_ + 5, code, 16);
      if (error != std::errc() || stop != at_ + 5 || code >= 0x80) return false;
      into += static_cast<char>(code);
      at_ += 5;
      return true;
    }
    const auto c = unescape(*at_);
    if (!c) return false;
    into += *c;
    ++at_;
    return true;
  }

  bool number(Json& into) {
    const char* begin = at_;
    const bool negative = *at_ == '-';
    if (negative) ++at_;
    const char* digits = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    if (at_ == digits || (*digits == '0' && at_ != digits + 1)) return false;
    if (at_ != end_ && *at_ == '.') return fraction(into, begin);
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) return false;  // rare
    return negative ? whole<int64_t>(into, begin) : whole<uint64_t>(into, begin);
  }

  bool fraction(Json& into, const char* begin) {
    const char* digits = ++at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    if (at_ == digits || (at_ != end_ && (*at_ == 'e' || *at_ == 'E'))) return false;
    double number = 0;
    if (std::from_chars(begin, at_, number).ec != std::errc()) return false;
    into = number;
    return true;
  }

  template <typename Whole>
  bool whole(Json& into, const char* begin) {
    Whole number = 0;
    if (std::from_chars(begin, at_, number).ec != std::errc()) return false;
    into = number;
    return true;
  }

  // Passes over one value: brackets outside of strings are counted, nothing else is looked at.
  bool skip() {
    space();
    int depth = 0;
    while (at_ != end_) {
      const char c = *at_;
      if (c == '"') {
        if (!skip_string()) return false;
        if (depth == 0) return true;
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return true;
      if (c == '{' || c == '[') ++depth;
      ++at_;
      if ((c == '}' || c == ']') && --depth == 0) return true;
    }
    return false;
  }

  bool skip_string() {
    for (++at_; at_ != end_; ++at_) {
      if (*at_ == '"') {
        ++at_;
        return true;
      }
      if (*at_ != '\\') continue;
      ++at_;
      if (at_ == end_) return false;
    }
    return false;
  }

  const char* at_;
  const char* const end_;
  const FieldFilter& filter_;
};

}  // namespace

std::optional<Json> parse_quickly(std::string_view text, const FieldFilter& filter) {
  return QuickParser(text, filter).parse();
}

}  // namespace outrigger::kube
