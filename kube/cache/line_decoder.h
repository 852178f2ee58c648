#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace outrigger::kube {

/// Cuts a stream into lines. Every byte is looked at once, and copied once only where its line is
/// spread over several pieces; what is kept is the beginning of one line, `longest` bytes at most.
class LineDecoder {
 public:
  explicit LineDecoder(size_t longest) : longest_(longest) {}

  /// Calls `line` for each line that ends in `piece`, in order, without its line end; empty lines
  /// are passed over. The text is valid during the call. `line` returns false to take no more:
  /// then the rest of the piece is dropped and this returns false. IoError for a line too long.
  bool feed(std::string_view piece, const std::function<bool(std::string_view line)>& line);

  /// Bytes of a line that has no end yet.
  size_t pending() const { return pending_.size(); }

 private:
  bool finish(std::string_view end, const std::function<bool(std::string_view)>& line);
  void keep(std::string_view part);

  const size_t longest_;
  std::string pending_;
  std::string line_;  // the last that was spread over pieces, for its room
};

}  // namespace outrigger::kube
