#include "common/stop_signal.h"

#include <csignal>
#include <cstdlib>
#include <ctime>

namespace outrigger {

StopSignal::StopSignal() {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stops, &former_);
  waiter_ = std::jthread([this, stops](const std::stop_token& over) {
    int seen = 0;
    while (!over.stop_requested()) {
      const timespec wait{0, 100'000'000};
      const int signal = sigtimedwait(&stops, nullptr, &wait);
      if (signal < 0) continue;
      if (++seen > 1) {
        std::signal(signal, SIG_DFL);
        pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
        std::raise(signal);
        std::_Exit(128 + signal);  // a container's first process, whom signals do not end
      }
      source_.request_stop();
    }
  });
}

StopSignal::~StopSignal() {
  waiter_ = {};
  pthread_sigmask(SIG_SETMASK, &former_, nullptr);
}

}  // namespace outrigger
