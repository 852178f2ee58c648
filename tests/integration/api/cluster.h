#pragma once

#include <filesystem>
#include <string>

#include "common/file.h"

namespace outrigger::api {

struct CommandResult {
  int status = 0;
  std::string output;  // standard output and error, as they came
};

/// An API server that knows our CRD, asked with kubectl: OUTRIGGER_KUBECONFIG says which, with the
/// kubectl of PATH or OUTRIGGER_KUBECTL; without it, one of our own is started. Makes a namespace
/// of its own and deletes it at the end.
class Cluster {
 public:
  /// Why there is none; empty: there is one, from now on.
  static std::string missing();

  Cluster();
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Runs kubectl in the namespace with these arguments, which a shell reads.
  CommandResult kubectl(const std::string& arguments) const;
  /// Writes `text` to a file of that name that kubectl can read.
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  TemporaryDirectory folder_{"outrigger-api"};
  std::string namespace_;
};

}  // namespace outrigger::api
