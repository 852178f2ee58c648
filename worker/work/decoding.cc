#include "worker/work/decoding.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "common/error.h"
#include "data/decode.h"

namespace outrigger::worker {
namespace {

Shape batch_of(size_t samples, const Shape& image) {
  return {static_cast<int64_t>(samples), image[0], image[1], image[2]};
}

}  // namespace

Decoding::Decoding(std::shared_ptr<const feed::Lease> lease, const Shape& image,
                   MemorySource* memory)
    : lease_(std::move(lease)),
      pixels_(ElementType::kUint8, batch_of(lease_->samples.size(), image), memory),
      sample_bytes_(static_cast<size_t>(element_count(image))) {}

double Decoding::prefetch(PixelSource& source, ThreadPool& threads,
                          const std::optional<ProcessorClock>& neighbour) {
  Duration took{0};
  Spent spent;
  {
    const Stopwatch watch(spent, neighbour);
    took = source.prefetch(lease_->samples, is_evaluation(*lease_), threads);
  }
  prefetched_ = true;
  const std::scoped_lock lock(mutex_);
  // All threads waited for it.
  spent_.add(spent, threads.size());
  read_ += threads.size() * std::min(spent.clock, to_seconds(took));
  return threads.size() * spent.processor;
}

size_t Decoding::unclaimed() const { return wanted_ ? lease_->samples.size() - claimed_ : 0; }

std::optional<size_t> Decoding::claim() {
  if (unclaimed() == 0) return std::nullopt;
  return claimed_++;
}

Decoding::Made Decoding::make(size_t position, PixelSource& source,
                              const std::optional<ProcessorClock>& neighbour) {
  Spent spent;
  Duration read{0};
  bool of_use = true;
  {
    const Stopwatch watch(spent, neighbour);
    try {
      read = source.make(lease_->samples[position], is_evaluation(*lease_),
                         {pixels_.view().data + position * sample_bytes_, sample_bytes_});
    } catch (...) {
      of_use = note_failure(position);
    }
  }
  const std::scoped_lock lock(mutex_);
  spent_.add(spent, 1);
  read_ += std::min(spent.clock, to_seconds(read));
  ++made_;
  const bool last = !done_ && (made_ == lease_->samples.size() || !of_use);
  if (last) {
    made_at_ = std::chrono::steady_clock::now();
    wanted_ = false;
    done_ = true;
  }
  return {spent.clock, spent.processor, last};
}

bool Decoding::note_failure(size_t position) {
  const std::scoped_lock lock(mutex_);
  try {
    throw;
  } catch (const InvalidInput& error) {
    const bool always = dynamic_cast<const data::NoImage*>(&error) != nullptr;
    broken_.push_back({static_cast<uint32_t>(position), error.what(), always});
    return true;
  } catch (const IoError& error) {
    if (!done_) read_error_ = error.what();
  } catch (...) {
    if (!done_) failure_ = std::current_exception();
  }
  return false;
}

void Decoding::rethrow() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void Decoding::tell(feed::WorkTimes& times, double slowdown, int threads) const {
  const std::scoped_lock lock(mutex_);  // who fails last may still tell
  const double took = spent_.lasting(slowdown, read_);
  times.decode = static_cast<float>(took / threads);
  times.read = static_cast<float>(std::min(read_, took) / threads);
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
