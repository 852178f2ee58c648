#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/child_process.h"
#include "tests/integration/control_plane/control_plane.h"

namespace outrigger::integration {

/// The real outrigger-operator, with the rights of our manifest: the one built, or another program.
/// Ends with this.
class OperatorProcess {
 public:
  OperatorProcess(const ControlPlane& cluster, const std::string& name,
                  std::vector<std::string> more_flags = {},
                  const std::filesystem::path& program = built_program());
  static std::filesystem::path built_program();

  bool runs() { return !process_->poll(); }
  pid_t id() const { return process_->id(); }
  void signal(int signal);
  /// Its exit status; waits for a minute at most.
  int wait();
  std::string log() const;
  /// Where its health and metrics are, on 127.0.0.1, once it runs.
  int status_port() const;

 private:
  std::filesystem::path log_;
  std::optional<ChildProcess> process_;
};

}  // namespace outrigger::integration
