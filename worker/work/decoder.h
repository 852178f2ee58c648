#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "common/processor_clock.h"
#include "common/thread_pool.h"
#include "feed/messages.h"
#include "worker/work/decoding.h"
#include "worker/work/pixel_source.h"

namespace outrigger::worker {

/// Makes the pixels of leases on a pool's threads, sample by sample in the order of the leases.
/// Nobody waits for whoever is at a lease's last samples: the others go on with the next lease's.
/// The pool's own threads do so by themselves while no loop wants them; whoever owns this makes
/// samples in between, which without other threads is all that happens. Its functions are for that
/// one thread.
class Decoder {
 public:
  /// References must outlive this. `neighbour`: a thread that works on the same cores, whose time
  /// is not in what decoding takes.
  Decoder(ThreadPool& threads, PixelSource& pixels, const std::optional<ProcessorClock>& neighbour);
  /// Returns when no thread is at a sample.
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Called by other threads when a lease is done, and not any more once this has returned with
  /// another function; it must not call back. Null: nothing.
  void on_done(std::function<void()> tell);

  /// Has its files prefetched; its samples may be made from now on.
  void add(const feed::WorkKey& key, const std::shared_ptr<Decoding>& decoding);
  /// It is done, or not wanted any more: what is being made of it is for nothing.
  void remove(const feed::WorkKey& key);
  /// Of how many leases a sample is left that nobody makes yet.
  size_t waiting();
  /// Makes one such sample; false: there is none.
  bool make_one();
  /// Seconds of processors, over all threads, since this was last asked.
  double take_worked();

  /// For its life no other thread begins with a sample, so that all come to a loop.
  class Pause {
   public:
    explicit Pause(Decoder& decoder) : decoder_(decoder) { decoder.set_paused(true); }
    ~Pause() { decoder_.set_paused(false); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Decoder& decoder_;
  };

 private:
  struct Sample {
    std::shared_ptr<Decoding> decoding;
    size_t position = 0;
  };
  std::optional<Sample> claim();
  /// Whether with it a lease is done.
  bool make(const Sample& sample);
  /// Of a thread of the pool; whether there was a sample.
  bool make_idly();
  void set_paused(bool paused);

  ThreadPool& threads_;
  PixelSource& pixels_;
  const std::optional<ProcessorClock> neighbour_;
  std::mutex mutex_;
  std::map<feed::WorkKey, std::shared_ptr<Decoding>> queue_;  // with samples to claim
  bool paused_ = false;
  double worked_ = 0;
  std::mutex tell_mutex_;
  std::function<void()> tell_;
};

}  // namespace outrigger::worker
