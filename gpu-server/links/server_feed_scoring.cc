#include <utility>

#include "common/error.h"
#include "gpu-server/links/server_feed.h"

/// The feed's evaluations beside training.
namespace outrigger::gpu_server {

void ServerFeed::begin_scoring(feed::ScoringOptions options) {
  const std::scoped_lock lock(mutex_);
  coordinator_.begin_scoring(std::move(options), clock_.now());
  distribute();
}

double ServerFeed::scored() {
  const std::scoped_lock lock(mutex_);
  const feed::Scoring* const scoring = coordinator_.scoring();
  ensure(scoring != nullptr, "there is an evaluation to look at");
  return static_cast<double>(scoring->batches_done()) / scoring->batches();
}

bool ServerFeed::wait_for_scores() {
  constexpr Duration kTick = std::chrono::milliseconds(20);
  const auto span = trace_.span("wait for scores", 1, -1);
  std::unique_lock lock(mutex_);
  const feed::Scoring* const scoring = coordinator_.scoring();
  ensure(scoring != nullptr, "there is an evaluation to wait for");
  timeline_.device_is_done(clock_.now());
  for (uint32_t seen = scoring->batches_done(); !scoring->done();) {
    if (cancelled_) throw Cancelled("the run was asked to stop");
    coordinator_.throw_if_failed();
    if (coordinator_.scorers() == 0) break;
    wanted_ = {"wait for scores of batch", std::nullopt, scoring->batches_done()};
    coordinator_.tick(clock_.now());
    distribute();
    changed_.wait_for(lock, kTick);
    handed_out_ += scoring->batches_done() - seen;  // the watchdog sees that it goes on
    seen = scoring->batches_done();
  }
  wanted_.reset();
  return scoring->done();
}

std::vector<feed::Scoring::Batch> ServerFeed::end_scoring() {
  const std::scoped_lock lock(mutex_);
  auto results = coordinator_.end_scoring();
  distribute();
  return results;
}

size_t ServerFeed::scorers() {
  const std::scoped_lock lock(mutex_);
  return coordinator_.scorers();
}

}  // namespace outrigger::gpu_server
