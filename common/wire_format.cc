#include "common/wire_format.h"

namespace outrigger {

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

}  // namespace outrigger
