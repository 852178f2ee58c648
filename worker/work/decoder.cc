#include "worker/work/decoder.h"

#include <string>
#include <system_error>
#include <utility>

#include "common/error.h"
#include "common/thread_name.h"

namespace outrigger::worker {

Decoder::Decoder(ThreadPool& threads, PixelSource& pixels,
                 const std::optional<ProcessorClock>& neighbour)
    : threads_(threads), pixels_(pixels), neighbour_(neighbour) {
  constexpr int kMany = 4;
  if (threads_.size() >= kMany) {
    try {
      besides_ = std::jthread([this](const std::stop_token& over) { run_besides(over); });
    } catch (const std::system_error& failure) {
      throw IoError(std::string("cannot start a thread to decode: ") + failure.what());
    }
  }
  threads_.set_idle_work([this] { return make_for_owner(); });
}

Decoder::~Decoder() { threads_.set_idle_work(nullptr); }

void Decoder::watch(Watch watch) {
  const std::scoped_lock lock(mutex_);
  if (watch_.at_sample != nullptr) *watch_.at_sample = 0;
  watch_ = std::move(watch);
  show_oldest();
}

double Decoder::take_busy() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(busy_, 0) / threads_.size();
}

void Decoder::add(const feed::WorkKey& key, const std::shared_ptr<Decoding>& decoding) {
  const double processor = decoding->prefetch(pixels_, threads_, neighbour_);
  {
    const std::scoped_lock lock(mutex_);
    worked_ += processor;
    queue_.emplace(key, decoding);
  }
  tell_others();
}

void Decoder::remove(const feed::WorkKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = queue_.find(key);
  if (found == queue_.end()) return;
  found->second->give_up();
  queue_.erase(found);
}

bool Decoder::wants_more() {
  constexpr size_t kAhead = 2;  // the files of one are read while the one before it is made
  const std::scoped_lock lock(mutex_);
  return threads_.size() > 1 || queue_.size() < kAhead;
}

bool Decoder::has_some() {
  const std::scoped_lock lock(mutex_);
  return !queue_.empty();
}

void Decoder::settle() {
  set_most(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return under_way_.empty(); });
}

std::optional<Decoder::Sample> Decoder::claim() {
  while (!queue_.empty()) {
    const auto first = queue_.begin();
    const std::shared_ptr<Decoding> decoding = first->second;
    const auto position = decoding->claim();
    if (decoding->unclaimed() == 0) queue_.erase(first);
    if (!position) continue;
    under_way_.insert(++begun_);
    show_oldest();
    return Sample{decoding, *position, begun_};
  }
  return std::nullopt;
}

Decoding::Made Decoder::make(const Sample& sample) {
  const Decoding::Made made = sample.decoding->make(sample.position, pixels_, neighbour_);
  const std::scoped_lock lock(mutex_);
  worked_ += made.processor;
  under_way_.erase(sample.number);
  show_oldest();
  if (most_ != kAnyNumber) changed_.notify_all();
  return made;
}

bool Decoder::make_one() {
  if (besides_.joinable()) return false;
  std::optional<Sample> sample;
  {
    const std::scoped_lock lock(mutex_);
    sample = claim();
  }
  if (sample) static_cast<void>(make(*sample));
  return sample.has_value();
}

bool Decoder::make_for_owner() {
  std::optional<Sample> sample;
  {
    const std::scoped_lock lock(mutex_);
    if (under_way_.size() >= most_) return false;
    sample = claim();
  }
  if (!sample) return false;
  const Decoding::Made made = make(*sample);
  const std::scoped_lock lock(mutex_);
  if (most_ == kAnyNumber) busy_ += made.clock;  // else the owner is busy, who tells so himself
  if (made.last && watch_.lease_done) watch_.lease_done();
  return true;
}

void Decoder::run_besides(const std::stop_token& over) {
  name_thread("decode");
  while (!over.stop_requested()) {
    if (make_for_owner()) continue;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, over, [this] { return under_way_.size() < most_ && !queue_.empty(); });
  }
}

double Decoder::take_worked() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(worked_, 0);
}

void Decoder::set_most(size_t under_way) {
  {
    const std::scoped_lock lock(mutex_);
    most_ = under_way;
  }
  threads_.allow_idle_work(under_way > 0);
  if (under_way > 0 && besides_.joinable()) changed_.notify_one();
}

void Decoder::tell_others() {
  if (besides_.joinable()) changed_.notify_one();
  threads_.wake_idle();
}

void Decoder::show_oldest() {
  if (watch_.at_sample != nullptr) *watch_.at_sample = under_way_.empty() ? 0 : *under_way_.begin();
}

}  // namespace outrigger::worker
