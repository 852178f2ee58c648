#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "common/clock.h"
#include "transport/address.h"

namespace outrigger::transport {

class Listener;

struct CollectiveOptions {
  int rank = 0;
  int size = 1;
  /// How often the job was started: ranks of one attempt meet only each other. What an earlier one
  /// left on a machine that did not answer for a while dials here as well.
  int64_t attempt = 0;
  /// For all ranks to come. Those that are started together come minutes apart where a machine or
  /// an image is waited for.
  Duration join_limit = std::chrono::seconds(60);
  /// For each operation: a rank that takes longer is lost.
  Duration limit = std::chrono::seconds(60);
  /// Ends the wait for ranks with Cancelled.
  std::stop_token stop = {};
};

/// What the server's ranks do together, over Gloo, on CPUs. All ranks make the same calls in the
/// same order, one at a time. A rank that leaves or whose process dies makes the call fail with
/// IoError on every other rank, within a second; one that stands still or whose machine is gone,
/// within the limit. After that every call fails. Not thread-safe.
class Collective {
 public:
  /// Rank 0 meets the others on the server's one port, beside the workers.
  static std::unique_ptr<Collective> host(Listener& listener, const CollectiveOptions& options);
  /// The other ranks dial rank 0's port, for as long as join_limit lets them try.
  static std::unique_ptr<Collective> join(const Address& address, const std::string& token,
                                          const CollectiveOptions& options);
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Replaces every element by its sum over the ranks, added in the order of the ranks: bitwise the
  /// same on all of them, and in every run. All ranks give the same number of elements.
  virtual void all_reduce(std::span<float> values) = 0;

  /// Likewise with half the bytes: every rank's elements are rounded to bfloat16 first (its own
  /// too), added in float32 in the order of the ranks, and the sum is rounded again.
  virtual void all_reduce_bfloat16(std::span<float> values) = 0;

  /// Replaces `bytes` by those of `root`. All ranks give the same size.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  /// Returns when every rank has called it.
  virtual void barrier() = 0;
};

}  // namespace outrigger::transport
