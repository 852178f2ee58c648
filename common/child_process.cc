#include "common/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "common/error.h"
#include "common/file.h"

namespace outrigger {
namespace {

/// Between fork and exec: only what is safe there.
[[noreturn]] void become(const char* program, char* const* arguments, int log, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);  // what a terminal sends reaches the parent alone, and once
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (log >= 0) {
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
  }
  ::execv(program, arguments);
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments,
                           const std::optional<std::filesystem::path>& log) {
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  FileDescriptor output;
  if (log) {
    output.reset(::open(log->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!output) throw_errno("opening the log " + log->string(), errno);
  }
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("starting " + program.string(), errno);
  if (pid_ == 0) become(words[0].c_str(), pointers.data(), output.get(), parent);
}

ChildProcess::~ChildProcess() { end(); }

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  status_ = other.status_;
  return *this;
}

std::optional<int> ChildProcess::poll() {
  if (pid_ < 0 || status_) return status_;
  int raw = 0;
  const pid_t got = ::waitpid(pid_, &raw, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  status_ = got < 0 ? 127 : WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  return status_;
}

void ChildProcess::terminate() {
  if (pid_ > 0 && !poll()) ::kill(pid_, SIGTERM);
}

void ChildProcess::kill() {
  if (pid_ > 0 && !poll()) ::kill(pid_, SIGKILL);
}

void ChildProcess::end() {
  if (pid_ < 0) return;
  terminate();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!poll()) {
    if (std::chrono::steady_clock::now() > give_up) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  pid_ = -1;
}

std::filesystem::path sibling_program(const std::string& name) {
  auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  if (!std::filesystem::exists(path))
    throw IoError(path.string() + " is not there; it belongs beside the program that runs");
  return path;
}

}  // namespace outrigger
