#include "worker/token.h"

#include "common/file.h"

namespace outrigger::worker {

std::string read_token(const std::filesystem::path& file) {
  if (file.empty())
    throw InvalidInput("no token file: --token-file or OUTRIGGER_TOKEN_FILE must name one");
  std::string token = read_file(file, 4096);
  const auto end = token.find_last_not_of(" \t\r\n");
  token.erase(end == std::string::npos ? 0 : end + 1);
  if (token.empty()) throw InvalidInput("the token file " + file.string() + " is empty");
  return token;
}

}  // namespace outrigger::worker
