#include "worker/fault.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <map>

#include "common/error.h"
#include "common/log.h"

namespace outrigger::worker {

FaultPoint::FaultPoint() {
  const char* asked = std::getenv("OUTRIGGER_FAULT");
  if (asked == nullptr) return;
  const std::string text = asked;
  const auto first = text.find(':');
  const auto second = text.find(':', first + 1);
  name_ = second == std::string::npos ? "" : text.substr(second + 1);
  const std::map<std::string, int> signals{{"KILL", SIGKILL}, {"STOP", SIGSTOP}, {"TERM", SIGTERM}};
  const auto known = signals.find(name_);
  if (known == signals.end()) {
    throw InvalidInput("OUTRIGGER_FAULT='" + text +
                       "': wanted is POINT:COUNT:SIGNAL with KILL, STOP or TERM");
  }
  point_ = text.substr(0, first);
  const std::string count = text.substr(first + 1, second - first - 1);
  const auto [end, fault] = std::from_chars(count.data(), count.data() + count.size(), left_);
  if (fault != std::errc{} || end != count.data() + count.size() || left_ < 1)
    throw InvalidInput("OUTRIGGER_FAULT='" + text + "': COUNT must be a number above 0");
  signal_ = known->second;
}

void FaultPoint::reached(std::string_view point) {
  if (left_ == 0 || point_ != point) return;
  if (--left_ > 0) return;
  log::warning("fault point {}: {}", point, name_);
  // To the process: SIGTERM is a thread's to wait for, which is not this one.
  ::kill(::getpid(), signal_);
}

}  // namespace outrigger::worker
