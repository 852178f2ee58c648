#include "training/simulator/processor.h"

#include <algorithm>
#include <utility>

namespace outrigger::training {
namespace {

constexpr double kNothing = 1e-9;  // a nanosecond: what a clock of ours can tell apart

}  // namespace

void Processor::start(double seconds, std::function<void()> done) {
  progress();
  jobs_.push_back({seconds, std::move(done)});
  expect_next();
}

void Processor::progress() {
  const double passed = to_seconds(events_.now() - since_);
  since_ = events_.now();
  for (Job& job : jobs_) job.left -= passed / static_cast<double>(jobs_.size());
}

void Processor::expect_next() {
  if (jobs_.empty()) return;
  const double least = std::max(0.0, std::ranges::min_element(jobs_, {}, &Job::left)->left) *
                       static_cast<double>(jobs_.size());
  events_.after(from_seconds(least), [this, expectation = ++expectation_] { finish(expectation); });
}

void Processor::finish(uint64_t expectation) {
  if (expectation != expectation_) return;
  progress();
  std::vector<Job> over;
  for (Job& job : jobs_) {
    if (job.left <= kNothing) over.push_back(std::move(job));
  }
  std::erase_if(jobs_, [](const Job& job) { return job.left <= kNothing; });
  expect_next();
  for (const Job& job : over) job.done();
}

}  // namespace outrigger::training
