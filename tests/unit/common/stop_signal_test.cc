#include "common/stop_signal.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace outrigger {
namespace {

constexpr int kBySignal = 200;  // plus the signal: the status of one that a signal ended

/// From here on the next child is the first process of a container's kind of processes.
bool leave_processes() {
  return ::unshare(CLONE_NEWPID) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
}

bool may_leave_processes() {
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(leave_processes() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

/// Says when it is ready and when a stop is asked for, which it does not heed.
[[noreturn]] void ignore_stops(int told) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const StopSignal stop;
  const auto tell = [told] {
    if (::write(told, "!", 1) != 1) std::_Exit(1);
  };
  const std::stop_callback asked(stop.token(), tell);
  tell();
  for (;;) ::pause();
}

/// Ends with how a child did that was asked to stop twice.
[[noreturn]] void ask_twice() {
  ::alarm(60);
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) std::_Exit(1);
  const pid_t child = ::fork();
  if (child == 0) ignore_stops(pipe[1]);
  for (int i = 0; i < 2; ++i) {
    char byte = 0;
    if (::read(pipe[0], &byte, 1) != 1) std::_Exit(1);
    ::kill(child, SIGTERM);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::_Exit(WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status));
}

TEST(StopSignalDeathTest, ASecondOneEndsTheProcess) {
  EXPECT_EXIT(ask_twice(), testing::ExitedWithCode(kBySignal + SIGTERM), "");
}

TEST(StopSignalDeathTest, ASecondOneEndsAContainersFirstProcessToo) {
  if (!may_leave_processes()) GTEST_SKIP() << "no process ids of their own to be had here";
  EXPECT_EXIT(
      {
        leave_processes();
        ask_twice();
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace outrigger
