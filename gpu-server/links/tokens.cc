#include "gpu-server/links/tokens.h"

#include <span>

#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"
#include "worker/token.h"

namespace outrigger::gpu_server {
std::string join_token(const api::Launch& launch, const std::filesystem::path& directory) {
  if (!launch.token_file.empty()) return worker::read_token(launch.token_file);
  const std::string bytes = random_bytes(32);
  std::string token = to_hex(std::as_bytes(std::span(bytes)));
  const auto path = directory / "join-token";
  write_file_atomically(path, token + "\n", 0600);
  log::info("no token file given: made one, workers use --token-file {}", path.string());
  return token;
}

std::string control_token(const api::Launch& launch) {
  return launch.control_token_file.empty() ? std::string()
                                           : worker::read_token(launch.control_token_file);
}

}  // namespace outrigger::gpu_server
