#pragma once

#include <csetjmp>

namespace outrigger::data::codec {

/// Runs step(context) of a C library that reports failure by longjmp to `jump`; false when it did.
/// The jump skips destructors, so the step may hold nothing that has one.
[[gnu::noinline]] inline bool guarded(std::jmp_buf& jump, void (*step)(void*), void* context) {
  if (setjmp(jump) != 0) return false;
  step(context);
  return true;
}

/// The same for a lambda without arguments.
template <typename Step>
bool guarded(std::jmp_buf& jump, Step& step) {
  return guarded(
      jump, [](void* context) { (*static_cast<Step*>(context))(); }, &step);
}

}  // namespace outrigger::data::codec
