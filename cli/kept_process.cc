#include "cli/kept_process.h"

#include <algorithm>

#include "common/error.h"
#include "common/log.h"

namespace outrigger::cli {

bool KeptProcess::keep(Time now) {
  if (process_) {
    const auto status = process_->poll();
    if (!status || *status == 0) return false;
    log::warning("{} ended with status {}", name_, *status);
    process_.reset();
    back_off(now);
    return true;
  }
  if (now < not_before_) return false;
  try {
    process_.emplace(start_());
  } catch (const IoError& error) {
    log::warning("{} could not be started and is tried again: {}", name_, error.what());
    back_off(now);
  }
  return false;
}

void KeptProcess::terminate() {
  if (process_) process_->terminate();
}

void KeptProcess::back_off(Time now) {
  constexpr std::chrono::seconds kLongest(10);
  not_before_ = now + wait_;
  wait_ = std::min<std::chrono::milliseconds>(wait_ * 2, kLongest);
}

}  // namespace outrigger::cli
