#include "kube/cache/line_decoder.h"

#include "common/error.h"

namespace outrigger::kube {
namespace {

// Most objects' lines; what a large one took is given back.
constexpr size_t kKeptCapacity = 64 << 10;

}  // namespace

bool LineDecoder::feed(std::string_view piece,
                       const std::function<bool(std::string_view line)>& line) {
  for (size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    if (!finish(piece.substr(0, end), line)) return false;
    piece.remove_prefix(end + 1);
  }
  if (!piece.empty()) keep(piece);
  return true;
}

bool LineDecoder::finish(std::string_view end, const std::function<bool(std::string_view)>& line) {
  if (!pending_.empty()) {
    keep(end);
    line_.clear();
    line_.swap(pending_);  // the line's place is the next one's
    end = line_;
  }
  if (end.size() > longest_)
    throw IoError("a line of more than " + std::to_string(longest_) + " bytes came");
  if (end.ends_with('\r')) end.remove_suffix(1);
  const bool go_on = end.empty() || line(end);
  if (line_.capacity() > kKeptCapacity) std::string().swap(line_);
  return go_on;
}

void LineDecoder::keep(std::string_view part) {
  if (pending_.size() + part.size() > longest_)
    throw IoError("a line of more than " + std::to_string(longest_) + " bytes came");
  pending_.append(part);
}

}  // namespace outrigger::kube
