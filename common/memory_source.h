#pragma once

#include <cstddef>
#include <memory>

namespace outrigger {

/// Memory of a kind of its own, such as a device copies from without the host's help. Thread-safe.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// At least `bytes`, aligned to 64 and not initialised, which keep the source alive and go back
  /// to it by themselves. Null where there is none to be had: ordinary memory has to do then.
  virtual std::shared_ptr<std::byte> acquire(size_t bytes) = 0;
};

}  // namespace outrigger
