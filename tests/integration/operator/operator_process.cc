#include "tests/integration/operator/operator_process.h"

#include <csignal>
#include <thread>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::integration {

std::filesystem::path OperatorProcess::built_program() { return OUTRIGGER_OPERATOR; }

OperatorProcess::OperatorProcess(const ControlPlane& cluster, const std::string& name,
                                 std::vector<std::string> more_flags,
                                 const std::filesystem::path& program)
    : log_(cluster.folder() / (name + ".log")) {
  const auto key = cluster.folder() / "token-key";
  if (!std::filesystem::exists(key))
    write_file_atomically(key, "a key of at least thirty-two bytes, and some more");
  std::vector<std::string> flags{"--kubeconfig",      cluster.operator_kubeconfig().string(),
                                 "--token-key-file",  key.string(),
                                 "--server-image",    "registry.example/outrigger-server:1",
                                 "--worker-image",    "registry.example/outrigger-worker:1",
                                 "--listen",          "127.0.0.1",
                                 "--status-port",     "0",
                                 "--lease-namespace", "outrigger-system",
                                 "--lease-name",      "outrigger"};
  flags.insert(flags.end(), more_flags.begin(), more_flags.end());
  process_.emplace(program, flags, log_);
}

void OperatorProcess::signal(int signal) { ::kill(process_->id(), signal); }

int OperatorProcess::wait() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (;;) {
    if (const auto status = process_->poll()) return *status;
    if (std::chrono::steady_clock::now() > deadline)
      throw IoError("the operator does not end: " + log());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::string OperatorProcess::log() const { return read_file(log_); }

int OperatorProcess::status_port() const {
  const std::string text = log();
  const std::string words = "health and metrics on port ";
  const size_t found = text.find(words);
  if (found == text.npos) throw IoError("the operator serves no pages yet: " + text);
  return std::stoi(text.substr(found + words.size()));
}

}  // namespace outrigger::integration
