#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "common/memory_source.h"
#include "nn/cuda/engine.h"

namespace outrigger::nn::cuda {

/// Pinned memory of an engine for what is on its way to the device: links receive into it, and the
/// server's own worker decodes into it. Blocks are used again, since pinning takes milliseconds and
/// giving back waits for the device. Where there is no more, one warning says so. Thread-safe.
class PinnedSource final : public MemorySource, public std::enable_shared_from_this<PinnedSource> {
 public:
  /// Takes at most `most_bytes`.
  static std::shared_ptr<PinnedSource> create(std::shared_ptr<Engine> engine, size_t most_bytes);

  std::shared_ptr<std::byte> acquire(size_t bytes) override;

  /// What it has taken, in use or not.
  size_t taken_bytes() const;

 private:
  PinnedSource(std::shared_ptr<Engine> engine, size_t most_bytes)
      : engine_(std::move(engine)), most_bytes_(most_bytes) {}
  /// One that nobody uses, at most twice as large unless no more may be taken.
  PinnedMemory find(size_t bytes);
  /// A new one, or none.
  PinnedMemory make(size_t bytes);
  /// Whether so much more may be taken; then it counts as taken.
  bool reserve(size_t bytes);
  void give_back(const std::byte* data);

  const std::shared_ptr<Engine> engine_;
  mutable std::mutex mutex_;  // the engine's, where both are wanted, comes first
  size_t most_bytes_;
  size_t taken_bytes_ = 0;
  std::multimap<size_t, PinnedMemory> free_;  // by size
  std::map<const std::byte*, PinnedMemory> used_;
  bool warned_ = false;
};

}  // namespace outrigger::nn::cuda
