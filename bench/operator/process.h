#pragma once

#include <sys/types.h>

#include <chrono>

namespace outrigger::bench {

/// What the kernel says of a process that runs. Both throw IoError where there is none.
std::chrono::duration<double> cpu_time(pid_t process);
double resident_mebibytes(pid_t process);

/// Sets what docker/Dockerfile sets in the operator's image, for processes that are started from
/// now on. Throws IoError where there is no such image.
void use_environment_of_image();

}  // namespace outrigger::bench
