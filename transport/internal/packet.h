#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/clock.h"
#include "transport/internal/framing.h"

namespace outrigger::transport {

/// What goes out next, as the bytes to write in order: the link's own signals first, then a piece
/// of a frame, or several frames that are small.
struct Packet {
  std::vector<HeaderBytes> headers;
  std::vector<std::span<const std::byte>>
      pieces;             ///< point into `headers` and into the frames being sent
  size_t frame_part = 0;  ///< bytes of frames in it
  TimePoint start;        ///< when it was filled

  void begin(size_t most_headers, TimePoint time) {
    headers.clear();
    headers.reserve(most_headers);  // pieces point into it
    pieces.clear();
    frame_part = 0;
    start = time;
  }

  /// What it counts for on a link whose rate is limited.
  size_t cost() const { return frame_part + headers.size() * kHeaderBytes; }

  /// So many bytes of it are written.
  void drop(size_t bytes) {
    size_t gone = 0;
    while (gone < pieces.size() && bytes >= pieces[gone].size()) bytes -= pieces[gone++].size();
    pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(gone));
    if (bytes > 0) pieces.front() = pieces.front().subspan(bytes);
  }
};

}  // namespace outrigger::transport
