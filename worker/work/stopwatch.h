#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "common/processor_clock.h"
#include "common/thread_pool.h"

namespace outrigger::worker {

/// What a process takes of processors to what its work does, in the last second or two of that:
/// links and weights take some besides.
class Besides {
 public:
  /// `work`: seconds of processors, on all its threads.
  void worked(double work) { work_ += work; }
  /// Of what the process takes, so much is done once and belongs to no work.
  void leave_out(double process) {
    if (since_) *since_ += process;
  }
  /// `process`: likewise, of the whole process since it began.
  void look(double process) {
    constexpr double kEnough = 0.02;  // seconds of work that tell something
    constexpr double kLong = 1;
    constexpr double kMost = 2;
    if (!since_) {
      since_ = process;  // what ran before the first look was no such work
      work_ = 0;
    }
    if (work_ < kEnough) return;
    times_ = std::clamp((process - *since_) / work_, 1.0, kMost);
    if (work_ < kLong) return;
    since_ = (*since_ + process) / 2;
    work_ /= 2;
  }
  double times() const { return times_; }

 private:
  double times_ = 1;
  double work_ = 0;
  std::optional<double> since_;  // what the process had taken before that work
};

/// How many times as long as its processor time work on some threads takes in the long run, by the
/// CPU quota of this process, which may change.
class Quota {
 public:
  /// `alone`: all that the process does belongs to that work, which has to share the quota with it.
  Quota(int threads, bool alone) : threads_(threads), alone_(alone) {}
  double slowdown() {
    constexpr std::chrono::milliseconds kLook{50};
    const TimePoint now = system_now();
    if (now >= look_at_) {
      look_at_ = now + kLook;
      look();
    }
    return slowdown_;
  }
  /// Work took so many seconds of the processor of each of so many threads.
  void worked(double processor, int threads) { besides_.worked(threads * processor); }
  /// What is done once, on one thread, took so many: work does not pay for it.
  void leave_out(double processor) { besides_.leave_out(processor); }
  /// From now on the work is another, and so is what it needs besides.
  void begin_anew() {
    besides_ = {};
    look_at_ = {};
  }

 private:
  void look() {
    const double cores = lasting_cores();
    slowdown_ = std::max(1.0, threads_ / cores);
    if (!alone_) return;
    besides_.look(to_seconds(process_.now()));
    // Where there is no quota what the process does besides may have cores of its own.
    if (cores < cores_of_mask()) slowdown_ = std::max(1.0, besides_.times() * threads_ / cores);
  }

  const int threads_;
  const bool alone_;
  const ProcessorClock process_ = ProcessorClock::of_this_process();
  Besides besides_;
  double slowdown_ = 1;
  TimePoint look_at_;
};

/// Seconds that work took: by the clock, of its thread's processor, and what a neighbour's thread,
/// which works on the same cores, had of those meanwhile.
struct Spent {
  double clock = 0;
  double processor = 0;
  double neighbour = 0;

  /// What something else took, on so many threads each.
  void add(const Spent& other, int threads) {
    clock += threads * other.clock;
    processor += threads * other.processor;
    neighbour += threads * other.neighbour;
  }
  /// As it would be in the long run, without the neighbour. With a quota a thread runs at full
  /// speed for a while and then not at all, so that a short piece tells little by the clock.
  /// `waited`: of the clock's, for what is not on cores, while which the neighbour disturbs nobody.
  double lasting(double slowdown, double waited = 0) const {
    const double alone = std::min(clock, std::max(clock - neighbour, processor + waited));
    return slowdown > 1 ? std::max(alone, slowdown * processor) : alone;
  }
};

/// Adds the time of its life.
class Stopwatch {
 public:
  explicit Stopwatch(Spent& sum, const std::optional<ProcessorClock>& neighbour = {})
      : sum_(sum), neighbour_(neighbour), begin_(now()) {}
  ~Stopwatch() {
    const Times end = now();
    sum_.clock += to_seconds(end.clock - begin_.clock);
    sum_.processor += to_seconds(end.processor - begin_.processor);
    sum_.neighbour += to_seconds(end.neighbour - begin_.neighbour);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  struct Times {
    TimePoint clock;
    Duration processor;
    Duration neighbour;
  };
  Times now() const {
    return {system_now(), own_.now(), neighbour_ ? neighbour_->now() : Duration{0}};
  }

  Spent& sum_;
  const std::optional<ProcessorClock> neighbour_;
  const ProcessorClock own_ = ProcessorClock::of_this_thread();
  const Times begin_;
};

}  // namespace outrigger::worker
