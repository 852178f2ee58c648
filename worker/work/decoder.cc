#include "worker/work/decoder.h"

#include <utility>

namespace outrigger::worker {

Decoder::Decoder(ThreadPool& threads, PixelSource& pixels,
                 const std::optional<ProcessorClock>& neighbour)
    : threads_(threads), pixels_(pixels), neighbour_(neighbour) {
  threads_.set_idle_work([this] { return make_idly(); });
}

Decoder::~Decoder() {
  set_paused(true);
  threads_.set_idle_work(nullptr);
}

void Decoder::on_done(std::function<void()> tell) {
  const std::scoped_lock lock(tell_mutex_);
  tell_ = std::move(tell);
}

void Decoder::add(const feed::WorkKey& key, const std::shared_ptr<Decoding>& decoding) {
  const double processor = decoding->prefetch(pixels_, threads_, neighbour_);
  {
    const std::scoped_lock lock(mutex_);
    worked_ += processor;
    queue_.emplace(key, decoding);
  }
  threads_.wake_idle();
}

void Decoder::remove(const feed::WorkKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = queue_.find(key);
  if (found == queue_.end()) return;
  found->second->give_up();
  queue_.erase(found);
}

size_t Decoder::waiting() {
  const std::scoped_lock lock(mutex_);
  return queue_.size();
}

std::optional<Decoder::Sample> Decoder::claim() {
  const std::scoped_lock lock(mutex_);
  while (!queue_.empty()) {
    const auto first = queue_.begin();
    if (const auto position = first->second->claim()) {
      Sample sample{first->second, *position};
      if (first->second->all_claimed()) queue_.erase(first);
      return sample;
    }
    queue_.erase(first);
  }
  return std::nullopt;
}

bool Decoder::make(const Sample& sample) {
  const Decoding::Made made = sample.decoding->make(sample.position, pixels_, neighbour_);
  const std::scoped_lock lock(mutex_);
  worked_ += made.processor;
  return made.last;
}

bool Decoder::make_one() {
  const auto sample = claim();
  if (sample) make(*sample);
  return sample.has_value();
}

bool Decoder::make_idly() {
  {
    const std::scoped_lock lock(mutex_);
    if (paused_) return false;
  }
  const auto sample = claim();
  if (!sample) return false;
  if (make(*sample)) {
    const std::scoped_lock lock(tell_mutex_);
    if (tell_) tell_();
  }
  return true;
}

double Decoder::take_worked() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(worked_, 0);
}

void Decoder::set_paused(bool paused) {
  {
    const std::scoped_lock lock(mutex_);
    paused_ = paused;
    if (paused || queue_.empty()) return;
  }
  threads_.wake_idle();
}

}  // namespace outrigger::worker
