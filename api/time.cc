#include "api/time.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace outrigger::api {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

/// Takes numbers and marks off the front of a text; `ok` falls once and stays.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  int number(size_t digits) {
    int value = 0;
    const char* end = rest_.data() + std::min(digits, rest_.size());
    const auto [stop, fault] = std::from_chars(rest_.data(), end, value);
    ok_ = ok_ && rest_.size() >= digits && fault == std::errc{} && stop == end && rest_[0] != '-';
    rest_.remove_prefix(std::min(digits, rest_.size()));
    return value;
  }
  char mark(std::string_view allowed) {
    if (rest_.empty() || allowed.find(rest_[0]) == allowed.npos) {
      ok_ = false;
      return '\0';
    }
    const char found = rest_[0];
    rest_.remove_prefix(1);
    return found;
  }
  bool skip_fraction() {
    if (rest_.empty() || rest_[0] != '.') return true;
    const size_t end = std::min(rest_.find_first_not_of("0123456789", 1), rest_.size());
    ok_ = ok_ && end > 1;
    rest_.remove_prefix(end);
    return ok_;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

seconds read_offset(Cursor& cursor) {
  const char sign = cursor.mark("Zz+-");
  if (sign != '+' && sign != '-') return seconds(0);
  const hours h(cursor.number(2));
  cursor.mark(":");
  const seconds offset = h + minutes(cursor.number(2));
  return sign == '-' ? -offset : offset;
}

}  // namespace

std::string to_string(Time time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

std::optional<Time> parse_time(std::string_view text) {
  Cursor cursor(text);
  const std::chrono::year year(cursor.number(4));
  cursor.mark("-");
  const std::chrono::month month(static_cast<unsigned>(cursor.number(2)));
  cursor.mark("-");
  const std::chrono::day day(static_cast<unsigned>(cursor.number(2)));
  cursor.mark("Tt ");
  const int hour = cursor.number(2);
  cursor.mark(":");
  const int minute = cursor.number(2);
  cursor.mark(":");
  const int second = cursor.number(2);
  cursor.skip_fraction();
  const seconds offset = read_offset(cursor);
  const std::chrono::year_month_day date(year, month, day);
  const bool clock = hour < 24 && minute < 60 && second <= 60;
  if (!cursor.ok() || !cursor.at_end() || !date.ok() || !clock) return std::nullopt;
  return std::chrono::sys_days(date) + hours(hour) + minutes(minute) + seconds(second) - offset;
}

}  // namespace outrigger::api
