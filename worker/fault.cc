#include "worker/fault.h"

#include <csignal>
#include <cstdlib>

#include "common/error.h"

namespace outrigger::worker {

FaultPoint::FaultPoint() {
  const char* asked = std::getenv("OUTRIGGER_FAULT");
  if (asked == nullptr) return;
  const std::string text = asked;
  const auto first = text.find(':');
  const auto second = text.find(':', first + 1);
  const std::string signal = second == std::string::npos ? "" : text.substr(second + 1);
  if (signal != "KILL" && signal != "STOP") {
    throw InvalidInput("OUTRIGGER_FAULT='" + text +
                       "': wanted is POINT:COUNT:KILL or POINT:COUNT:STOP");
  }
  point_ = text.substr(0, first);
  left_ = std::atoi(text.substr(first + 1, second - first - 1).c_str());
  signal_ = signal == "KILL" ? SIGKILL : SIGSTOP;
}

void FaultPoint::reached(const char* point) {
  if (left_ == 0 || point_ != point) return;
  if (--left_ == 0) std::raise(signal_);
}

}  // namespace outrigger::worker
