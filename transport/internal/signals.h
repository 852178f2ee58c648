#pragma once

#include <csignal>
#include <ctime>

namespace outrigger::transport {

/// Blocks every signal in this thread, for threads that a link owns: SIGTERM is for the program's
/// own threads, and Gloo writes to sockets without MSG_NOSIGNAL, so a dead peer would end the
/// process with SIGPIPE.
inline void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

/// Blocks SIGPIPE in this thread, and in the threads that it starts meanwhile; drops what came of
/// it at the end.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec at_once{};
    while (sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace outrigger::transport
