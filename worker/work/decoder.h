#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

#include "common/processor_clock.h"
#include "common/thread_pool.h"
#include "feed/messages.h"
#include "worker/work/decoding.h"
#include "worker/work/pixel_source.h"

namespace outrigger::worker {

/// Makes the pixels of leases on a pool's threads, sample by sample in the order of the leases.
/// Nobody waits for whoever is at a lease's last samples: the others go on with the next lease's.
///
/// The pool's own threads do so while no loop wants them, and whoever owns this in between, a
/// sample at a time. Where they are many, a thread besides does it for the owner, who stays free
/// for what is urgent: a part of a core is less there than all that waits for him. Its functions
/// are for the owner's thread.
class Decoder {
 public:
  /// References must outlive this. `neighbour`: a thread that works on the same cores, whose time
  /// is not in what decoding takes. Throws IoError where the machine gives it no thread.
  Decoder(ThreadPool& threads, PixelSource& pixels, const std::optional<ProcessorClock>& neighbour);
  /// Returns when no thread is at a sample.
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// How the owner learns of what others do.
  struct Watch {
    /// Others have made a lease's last sample. Called by any thread; it must not call back.
    std::function<void()> lease_done;
    /// Grows with the oldest sample that is being made; 0: none is. A read that hangs stops it.
    std::atomic<uint64_t>* at_sample = nullptr;
  };
  /// The former is not used any more once this has returned.
  void watch(Watch watch);
  /// Seconds that others were at samples since this was last asked, by how many there are; not of
  /// samples that were done while the owner had a Pause.
  double take_busy();

  /// Has its files prefetched; its samples may be made from now on.
  void add(const feed::WorkKey& key, const std::shared_ptr<Decoding>& decoding);
  /// It is done, or not wanted any more: what is being made of it is for nothing.
  void remove(const feed::WorkKey& key);
  /// Whether to add another lease. Others take whatever there is: nobody looks after them before a
  /// lease is done.
  bool wants_more();
  /// Whether a sample is left that nobody makes yet.
  bool has_some();
  /// Returns when nobody is at a sample; from then on nobody begins with one.
  void settle();
  /// Makes a sample that nobody makes yet; false: there is none, or it is for others.
  bool make_one();
  /// Seconds of processors, over all threads, since this was last asked.
  double take_worked();

  /// For its life others begin with a sample only where so many threads are left, for loops that
  /// have no work for more.
  class Pause {
   public:
    explicit Pause(Decoder& decoder, int threads = std::numeric_limits<int>::max())
        : decoder_(decoder) {
      decoder.set_most(static_cast<size_t>(std::max(0, decoder.threads_.size() - threads)));
    }
    ~Pause() { decoder_.set_most(kAnyNumber); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Decoder& decoder_;
  };

 private:
  static constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();
  struct Sample {
    std::shared_ptr<Decoding> decoding;
    size_t position = 0;
    uint64_t number = 0;  // of all that were begun
  };
  /// The next one, under way from now on. Wants the lock.
  std::optional<Sample> claim();
  /// Ends with it.
  Decoding::Made make(const Sample& sample);
  /// As one of the others; whether there was a sample.
  bool make_for_owner();
  /// Others begin with a sample only where so few are under way.
  void set_most(size_t under_way);
  void tell_others();
  /// The oldest sample under way has changed. Wants the lock.
  void show_oldest();
  void run_besides(const std::stop_token& over);

  ThreadPool& threads_;
  PixelSource& pixels_;
  const std::optional<ProcessorClock> neighbour_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<feed::WorkKey, std::shared_ptr<Decoding>> queue_;  // with samples to claim
  std::set<uint64_t> under_way_;
  uint64_t begun_ = 0;
  size_t most_ = kAnyNumber;
  double worked_ = 0;
  double busy_ = 0;
  Watch watch_;
  std::jthread besides_;  // where others make samples
};

}  // namespace outrigger::worker
