// Any bytes as what an API server may send on a watch. The first byte says how the stream is cut
// into pieces. Either an exception of ours, or events whose lines do not depend on the pieces.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "kube/cache/line_decoder.h"
#include "kube/cache/watch.h"
#include "kube/client/api_error.h"
#include "kube/client/base64.h"
#include "kube/object/object.h"
#include "kube/object/timestamp.h"

namespace outrigger::kube {
namespace {

constexpr size_t kLongest = 4096;

std::vector<std::string> lines_of(std::string_view stream, size_t piece) {
  LineDecoder decoder(kLongest);
  std::vector<std::string> lines;
  try {
    for (size_t at = 0; at < stream.size(); at += piece) {
      decoder.feed(stream.substr(at, piece), [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
      });
      if (decoder.pending() > kLongest) std::abort();
    }
  } catch (const IoError&) {
    lines.emplace_back("too long");
  }
  return lines;
}

void read_line(const std::string& text) {
  try {
    const WatchLine line = parse_watch_line(text, kManagedFields);
    if (line.object.contains("metadata") && line.object["metadata"].is_object() &&
        line.object["metadata"].contains("managedFields"))
      std::abort();
    key_of(line.object);
    uid_of(line.object);
    controller_of(line.object);
    is_older_version(resource_version_of(line.object), "7");
    ApiError::from("watching", line.object);
  } catch (const IoError&) {
    // What is no event is said to be none.
  }
}

void read_texts(const std::string& text) {
  if (const auto bytes = decode_base64(text);
      bytes && decode_base64(encode_base64(*bytes)) != bytes)
    std::abort();
  if (const auto time = parse_time(text); time && parse_time(format_micro_time(*time)) != time)
    std::abort();
}

}  // namespace
}  // namespace outrigger::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrigger::kube;
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto lines = lines_of(stream, size_t{data[0]} + 1);
  if (lines != lines_of(stream, stream.size() + 1)) std::abort();
  for (const std::string& line : lines) {
    read_line(line);
    read_texts(line);
  }
  return 0;
}
