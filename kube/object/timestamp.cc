#include "kube/object/timestamp.h"

#include <charconv>
#include <cstdio>

namespace outrigger::kube {
namespace {

using std::chrono::days;
using std::chrono::microseconds;
using std::chrono::seconds;

std::string format_seconds(Timestamp time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<seconds>(time) - day);
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

// Takes what it understands off the front of a text; after a failure all else fails too.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int number(size_t digits) {
    int value = 0;
    const std::string_view part = rest_.substr(0, digits);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    good = good && part.size() == digits && error == std::errc{} && part.front() != '-' &&
           end == part.data() + digits;
    rest_.remove_prefix(part.size());
    return value;
  }

  bool take(std::string_view any_of) {
    const bool there = !rest_.empty() && any_of.find(rest_.front()) != std::string_view::npos;
    if (there) rest_.remove_prefix(1);
    return there;
  }

  void expect(std::string_view any_of) { good = take(any_of) && good; }

  microseconds fraction() {
    microseconds value{0};
    microseconds unit{100'000};
    if (!take(".,")) return value;
    bool any = false;
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; rest_.remove_prefix(1)) {
      value += unit * (rest_.front() - '0');
      unit /= 10;
      any = true;
    }
    good = good && any;
    return value;
  }

  seconds offset() {
    if (take("Zz")) return seconds{0};
    const bool minus = !rest_.empty() && rest_.front() == '-';
    expect("+-");
    const int hours = number(2);
    expect(":");
    const int minutes = number(2);
    good = good && hours < 24 && minutes < 60;
    const seconds ahead{(hours * 60 + minutes) * 60};
    return minus ? -ahead : ahead;
  }

  bool at_end() const { return rest_.empty(); }

  bool good = true;

 private:
  std::string_view rest_;
};

}  // namespace

Timestamp wall_time() { return std::chrono::floor<microseconds>(std::chrono::system_clock::now()); }

std::string format_time(Timestamp time) { return format_seconds(time) + "Z"; }

std::string format_micro_time(Timestamp time) {
  const auto fraction = time - std::chrono::floor<seconds>(time);
  char text[16];
  std::snprintf(text, sizeof text, ".%06dZ", static_cast<int>(fraction.count()));
  return format_seconds(time) + text;
}

std::optional<Timestamp> parse_time(std::string_view text) {
  Scanner scan(text);
  const int year = scan.number(4);
  scan.expect("-");
  const int month = scan.number(2);
  scan.expect("-");
  const int day = scan.number(2);
  scan.expect("Tt");
  const int hour = scan.number(2);
  scan.expect(":");
  const int minute = scan.number(2);
  scan.expect(":");
  const int second = scan.number(2);
  const microseconds fraction = scan.fraction();
  const seconds offset = scan.offset();
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!scan.good || !scan.at_end() || !date.ok() || hour > 23 || minute > 59 || second > 60)
    return std::nullopt;
  const Timestamp time = Timestamp(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
                         std::chrono::minutes(minute) + seconds(second) + fraction - offset;
  // An offset may lead out of the years that four digits can tell.
  constexpr std::chrono::sys_days kFirst{std::chrono::year(0) / 1 / 1};
  constexpr std::chrono::sys_days kEnd{std::chrono::year(10000) / 1 / 1};
  if (time < kFirst || time >= kEnd) return std::nullopt;
  return time;
}

}  // namespace outrigger::kube
