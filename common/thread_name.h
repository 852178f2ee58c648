#pragma once

#include <pthread.h>

namespace outrigger {

/// Names the calling thread for debuggers, profilers and /proc/PID/task: at most 15 characters, or
/// it stays without a name.
inline void name_thread(const char* name) { ::pthread_setname_np(::pthread_self(), name); }

}  // namespace outrigger
