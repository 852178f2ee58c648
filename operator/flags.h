#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/options.h"

namespace outrigger::controller {

/// What the operator's command line says.
struct Flags {
  std::filesystem::path kubeconfig;
  std::string context;
  std::vector<std::string> namespaces;  // empty: all
  std::filesystem::path token_key_file;
  int workers = 16;  // most of a job is waiting for answers
  std::string listen = "::";
  int status_port = 8080;
  std::optional<int> health_port;
  bool elect_leader = true;
  std::string lease_ns;  // empty: that of the operator's own pod
  std::string lease_name = "outrigger-operator";
  std::string log_level = "info";
  Options jobs;  // without the key
};

/// Reads "--flag value", "--flag=value", and switches. Throws api::Failure(kBadUsage) that names
/// the flag, the value and what is allowed; for an unknown one the nearest flag that there is.
Flags parse_flags(std::span<const char* const> arguments);
/// The text for --help.
std::string flags_help();

/// The key that tokens are made from, out of its file. Throws api::Failure(kBadUsage) where it is
/// shorter than 32 bytes, IoError where it cannot be read.
std::string read_token_key(const std::filesystem::path& path);

}  // namespace outrigger::controller
