#include "worker/work/decoding.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>

#include "common/error.h"
#include "data/decode.h"

namespace outrigger::worker {

Decoding::Decoding(size_t samples, const Shape& image, MemorySource* memory)
    : pixels_(ElementType::kUint8, {static_cast<int64_t>(samples), image[0], image[1], image[2]},
              memory),
      count_(samples),
      sample_bytes_(static_cast<size_t>(element_count(image))) {}

void Decoding::prefetch(const feed::Lease& lease, PixelSource& source, const Crew& crew) {
  const Spent before = spent_;
  Duration took{0};
  {
    const Stopwatch watch(spent_, crew.neighbour);
    took = source.prefetch(lease.samples, is_evaluation(lease), crew.threads);
  }
  crew.quota.worked(spent_.processor - before.processor, crew.threads.size());
  read_ += std::min(spent_.clock - before.clock, to_seconds(took));
  prefetched_ = true;
}

void Decoding::make_some(const feed::Lease& lease, PixelSource& source, const Crew& crew,
                         feed::WorkTimes& times) {
  std::atomic<int64_t> read{0};  // of all threads' time, in nanoseconds
  std::atomic<int64_t> made{0};
  const auto count = std::min<size_t>(count_ - made_, static_cast<size_t>(crew.threads.size()));
  const bool evaluation = is_evaluation(lease);
  std::mutex mutex;
  const auto make = [&](int task) {
    const auto begin = std::chrono::steady_clock::now();
    const size_t position = made_ + static_cast<size_t>(task);
    try {
      read += source
                  .make(lease.samples[position], evaluation,
                        {pixels_.view().data + position * sample_bytes_, sample_bytes_})
                  .count();
    } catch (const InvalidInput& error) {
      const bool always = dynamic_cast<const data::NoImage*>(&error) != nullptr;
      const std::scoped_lock lock(mutex);
      broken_.push_back({static_cast<uint32_t>(position), error.what(), always});
    } catch (const IoError& error) {
      const std::scoped_lock lock(mutex);
      read_error_ = error.what();
    }
    made += Duration(std::chrono::steady_clock::now() - begin).count();
  };
  const Spent before = spent_;
  {
    const Stopwatch watch(spent_, crew.neighbour);
    crew.threads.parallel_for(static_cast<int>(count), make);
  }
  crew.quota.worked(spent_.processor - before.processor, static_cast<int>(count));
  read_ += (spent_.clock - before.clock) * static_cast<double>(std::min<int64_t>(read, made)) /
           static_cast<double>(std::max<int64_t>(1, made));
  const double took = spent_.lasting(crew.quota.slowdown(), read_);
  times.decode = static_cast<float>(took);
  times.read = static_cast<float>(std::min(read_, took));
  made_ += count;
  made_at_ = std::chrono::steady_clock::now();
}

std::vector<feed::Broken::Item> Decoding::take_broken() {
  std::ranges::sort(broken_, {}, &feed::Broken::Item::position);
  return std::exchange(broken_, {});
}

bool is_evaluation(const feed::Lease& lease) {
  return lease.kind == feed::WorkKind::kEvaluate || lease.kind == feed::WorkKind::kScore;
}

uint64_t pixel_hash(std::span<const std::byte> pixels) {
  constexpr uint64_t kPrime = 0x100000001B3ull;
  uint64_t hash = 0xCBF29CE484222325ull;
  size_t at = 0;
  for (; at + 8 <= pixels.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, pixels.data() + at, 8);
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 32;
  }
  for (; at < pixels.size(); ++at) hash = (hash ^ std::to_integer<uint64_t>(pixels[at])) * kPrime;
  return hash;
}

}  // namespace outrigger::worker
