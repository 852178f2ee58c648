#pragma once

#include <string>
#include <string_view>

namespace outrigger::worker {

/// Points at which a test may end or stop this process, to prove that it does not matter.
/// OUTRIGGER_FAULT names one and what happens there, "POINT:COUNT:SIGNAL"
/// ("sent-micro-batch:3:KILL"; KILL, STOP or TERM): at the third time the signal is raised, and the
/// log says so. Without the variable a point costs one comparison.
class FaultPoint {
 public:
  /// Throws InvalidInput where the variable says something else.
  FaultPoint();
  /// Whether reaching the point would raise the signal: then what was sent before it should have
  /// left.
  bool due(std::string_view point) const { return left_ == 1 && point_ == point; }
  void reached(std::string_view point);

 private:
  std::string point_;
  int left_ = 0;
  std::string name_;  // of the signal
  int signal_ = 0;
};

}  // namespace outrigger::worker
