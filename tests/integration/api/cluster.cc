#include "cluster.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "common/error.h"
#include "common/file.h"
#include "tests/integration/control_plane/control_plane.h"

namespace outrigger::api {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

CommandResult run(const std::string& command) {
  CommandResult result;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  ensure(pipe != nullptr, "a shell starts");
  std::array<char, 4096> buffer{};
  while (const size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), read);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

std::string program() {
  return environment("OUTRIGGER_KUBECTL", "kubectl") + " --kubeconfig '" +
         environment("OUTRIGGER_KUBECONFIG", "") + "'";
}

void require(const std::string& command) {
  const CommandResult result = run(command);
  if (result.status != 0) throw IoError(command + ": " + result.output);
}

}  // namespace

std::string Cluster::missing() {
  if (!environment("OUTRIGGER_KUBECONFIG", "").empty()) return "";
  std::string missing = integration::ControlPlane::missing();
  if (!missing.empty()) return missing;
  static const integration::ControlPlane own;
  ::setenv("OUTRIGGER_KUBECONFIG", own.admin_kubeconfig().c_str(), 1);
  ::setenv("OUTRIGGER_KUBECTL", integration::ControlPlane::kubectl_program().c_str(), 1);
  return "";
}

Cluster::Cluster() {
  const std::string name = folder_.path().string();
  namespace_ =
      "outrigger-api-" + name.substr(name.size() - 6);  // a deleted one is not free at once
  for (char& c : namespace_) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string crds = (std::filesystem::path(OUTRIGGER_SOURCE_DIR) / "charts/outrigger/crds");
  require(program() + " apply --server-side --force-conflicts -f '" + crds + "'");
  require(program() + " wait --for condition=Established crd/trainingjobs.outrigger.dev");
  require(program() + " create namespace " + namespace_);
}

Cluster::~Cluster() { run(program() + " delete namespace --wait=false " + namespace_); }

CommandResult Cluster::kubectl(const std::string& arguments) const {
  return run(program() + " --namespace " + namespace_ + " " + arguments);
}

std::filesystem::path Cluster::write(const std::string& name, const std::string& text) const {
  auto path = folder_.path() / name;
  std::filesystem::create_directories(path.parent_path());
  write_file_atomically(path, text);
  return path;
}

}  // namespace outrigger::api
