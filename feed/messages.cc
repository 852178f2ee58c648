#include "feed/messages.h"
namespace outrigger::feed {

const char* to_string(WireFormat format) {
  switch (format) {
    case WireFormat::kUint8:
      return "uint8";
    case WireFormat::kFloat32:
      return "float32";
    case WireFormat::kBFloat16:
      return "bfloat16";
    case WireFormat::kInt8:
      return "int8";
  }
  return "unknown";
}

std::string to_string(const WorkKey& key) {
  return "(incarnation " + std::to_string(key.incarnation) + ", step " + std::to_string(key.step) +
         ", index " + std::to_string(key.index) + ", attempt " + std::to_string(key.attempt) + ")";
}

}  // namespace outrigger::feed
