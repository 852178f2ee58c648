#pragma once

#include <string>

namespace outrigger::worker {

/// Points at which a test may end or stop this process, to prove that it does not matter.
/// OUTRIGGER_FAULT names one and what happens there, "POINT:COUNT:SIGNAL"
/// ("sent-micro-batch:3:KILL"): at the third time the signal is raised. Without the variable a
/// point costs one comparison.
class FaultPoint {
 public:
  FaultPoint();
  void reached(const char* point);

 private:
  std::string point_;
  int left_ = 0;
  int signal_ = 0;
};

}  // namespace outrigger::worker
