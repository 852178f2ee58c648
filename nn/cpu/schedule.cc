#include "nn/cpu/schedule.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "common/error.h"
#include "nn/cpu/onednn/primitive.h"
#include "nn/cpu/run.h"

namespace outrigger::nn::cpu {
namespace {

// Processor time, so that a profile on a busy machine counts this work alone.
int64_t thread_nanoseconds() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void Schedule::add(Piece piece) {
  ensure(phases_.empty(), "a schedule is complete once it is finished");
  pieces_.push_back(std::move(piece));
}

void Schedule::place(size_t piece, Phase& phase, int number) {
  phase_of_[piece] = number;
  if (pieces_[piece].kind == PieceKind::kBlock) {
    phase.blocks.push_back(piece);
  } else {
    phase.whole.push_back(piece);
    phase.whole_tasks += pieces_[piece].tasks;
  }
}

void Schedule::finish(const Blocks& blocks) {
  blocks_ = blocks;
  phase_of_.assign(pieces_.size(), 0);
  // Deferred pieces whose blocks are in the current phase, and what follows them one phase later.
  std::vector<size_t> waiting, following;
  const auto open = [&](bool beside_waiting) {
    phases_.emplace_back();
    if (!beside_waiting) return;
    for (const size_t piece : std::exchange(waiting, std::exchange(following, {})))
      place(piece, phases_.back(), phases() - 1);
  };
  bool barrier = true;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const PieceKind kind = pieces_[i].kind;
    if (kind == PieceKind::kDeferred) waiting.push_back(i);
    if (kind == PieceKind::kFollowing) following.push_back(i);
    if (kind == PieceKind::kBlock && std::exchange(barrier, false)) open(true);
    if (kind == PieceKind::kWhole) {
      // A single task is a short one; deferred work beside it would leave threads idle.
      open(pieces_[i].tasks > 1);
      barrier = true;
    }
    if (kind == PieceKind::kBlock || kind == PieceKind::kWhole)
      place(i, phases_.back(), phases() - 1);
  }
  while (!waiting.empty() || !following.empty()) open(true);
  find_ready();
}

void Schedule::find_ready() {
  int64_t open = 0;  // where what later phases write ends
  for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
    phase->ready = open;
    for (const auto* pieces : {&phase->whole, &phase->blocks}) {
      for (const size_t piece : *pieces) {
        for (const Range range : pieces_[piece].gradients) open = std::max(open, range.end());
      }
    }
    phase->tells = phase->ready < open;
  }
}

void Schedule::run_piece(size_t index, const Run& run, const Task& task,
                         Stopwatch* stopwatch) const {
  const Piece& piece = pieces_[index];
  if (stopwatch == nullptr) return piece.work(run, task);
  const int64_t begin = thread_nanoseconds();
  piece.work(run, task);
  stopwatch->nanoseconds[index] += thread_nanoseconds() - begin;
}

void Schedule::run_task(const Phase& phase, const Run& run, int task, int slot,
                        Stopwatch* stopwatch) const {
  for (const size_t piece : phase.whole) {
    if (task < pieces_[piece].tasks) return run_piece(piece, run, {task, slot, 0, 0}, stopwatch);
    task -= pieces_[piece].tasks;
  }
  for (const size_t piece : phase.blocks)
    run_piece(piece, run, {task, slot, blocks_.first(task), blocks_.samples(task)}, stopwatch);
}

void Schedule::execute(ThreadPool& threads, const Run& run, int active,
                       Stopwatch* stopwatch) const {
  for (const Phase& phase : phases_) {
    const int tasks = phase.whole_tasks + (phase.blocks.empty() ? 0 : active);
    const auto work = [&](int task) {
      onednn::use_one_thread();
      const SlotLease lease(*run.slots);
      run_task(phase, run, task, lease.slot(), stopwatch);
    };
    if (tasks == 1) {
      work(0);  // waking the pool costs more than the usual single task
    } else if (tasks > 1) {
      threads.parallel_for(tasks, work);
    }
    if (phase.tells && run.back->ready) run.back->ready(phase.ready);
  }
}

}  // namespace outrigger::nn::cpu
