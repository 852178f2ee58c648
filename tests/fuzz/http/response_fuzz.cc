// Any bytes as what a server may answer. The first byte says how they are cut into pieces. Either
// an exception of ours, or a response that does not depend on the pieces.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/error.h"
#include "http/response_parser.h"

namespace outrigger::http {
namespace {

std::string told(std::string_view bytes, size_t piece) {
  std::string body;
  ResponseParser parser([&](const Response&, std::string_view part) {
    body += part;
    return true;
  });
  try {
    std::string waiting;
    for (size_t at = 0; at < bytes.size() && !parser.done(); at += piece) {
      waiting += bytes.substr(at, piece);
      const size_t through = parser.feed(waiting);
      if (through > waiting.size()) std::abort();
      waiting.erase(0, through);
    }
    if (!parser.done()) parser.finish();
  } catch (const IoError&) {
    return "refused";
  }
  std::string text = std::to_string(parser.head().status) + (parser.keeps_connection() ? "+" : "-");
  for (const auto& [name, value] : parser.head().headers)
    text.append(name).append(":").append(value).append("\n");
  return text + body;
}

}  // namespace
}  // namespace outrigger::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrigger::http;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (told(bytes, size_t{data[0]} + 1) != told(bytes, bytes.size() + 1)) std::abort();
  return 0;
}
