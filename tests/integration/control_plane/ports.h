#pragma once

namespace outrigger::integration {

/// A TCP port of 127.0.0.1 that nobody listens on now, for a program that cannot choose its own.
int free_port();

}  // namespace outrigger::integration
