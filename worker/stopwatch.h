#pragma once

#include <chrono>

namespace outrigger::worker {

/// Adds the seconds of its life to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(float& sum) : sum_(sum), begin_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    sum_ += std::chrono::duration<float>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  float& sum_;
  const std::chrono::steady_clock::time_point begin_;
};

}  // namespace outrigger::worker
