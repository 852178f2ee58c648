#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace outrigger {

/// A program started by this one, in a process group of its own. It ends with its parent: the
/// kernel sends it SIGTERM when the parent's thread that started it dies. Movable; destroying a
/// child that still runs terminates it (SIGTERM, then SIGKILL after five seconds).
class ChildProcess {
 public:
  /// `log`: where its output goes; absent: where the parent's goes. Throws IoError.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::optional<std::filesystem::path>& log);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  /// Its exit status once it has ended (128 + signal where one ended it); nothing while it runs.
  std::optional<int> poll();
  void terminate();
  /// SIGKILL: for one that does not end when asked.
  void kill();
  pid_t id() const { return pid_; }

 private:
  void end();
  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// A program of this project: beside the running one. Throws IoError where it is not there.
std::filesystem::path sibling_program(const std::string& name);

}  // namespace outrigger
