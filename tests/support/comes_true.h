#pragma once

#include <chrono>
#include <thread>

namespace outrigger::testing_support {

/// Whether it comes true within 30 s: what never does fails a test, and does not hang it.
template <typename Condition>
bool comes_true(const Condition& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace outrigger::testing_support
