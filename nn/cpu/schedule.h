#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/thread_pool.h"
#include "nn/cpu/blocks.h"
#include "nn/parameter.h"

namespace outrigger::nn::cpu {

struct Run;

/// A buffer of the plan (buffers.h).
struct BufferId {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const BufferId&) const = default;
};

/// One call of a piece's work.
struct Task {
  int index = 0;      // which of the piece's tasks; of a block piece: the block
  int slot = 0;       // no two tasks that run at the same time have the same; below the pool's size
  int64_t first = 0;  // a block's samples
  int64_t samples = 0;
};
using Work = std::function<void(const Run& run, const Task& task)>;

enum class PieceKind : uint8_t {
  kBlock,      // one task a block; needs of other pieces only what they did for the same block
  kWhole,      // any tasks; begins when all before is done, and ends before anything behind begins
  kDeferred,   // begins when all block pieces before it are done; runs beside what comes next
  kFollowing,  // begins when the deferred piece before it is done; runs beside what comes next
};

struct Piece {
  PieceKind kind = PieceKind::kBlock;
  int layer = 0;  // for profiles
  int tasks = 0;
  std::vector<BufferId> uses;
  Work work;
  std::vector<Range> gradients = {};  // of the segment's: what it writes, nobody else does
};

/// Where a profile's times go; one counter a piece.
struct Stopwatch {
  std::vector<std::atomic<int64_t>> nanoseconds;
  std::atomic<int> passes = 0;
};

/// The order of work of one pass: pieces in program order, grouped into phases, one parallel loop
/// each. Consecutive block pieces share a phase and run one after the other on a block while it is
/// in the cache.
class Schedule {
 public:
  void add(Piece piece);
  /// Groups the pieces; none may be added afterwards.
  void finish(const Blocks& blocks);

  const std::vector<Piece>& pieces() const { return pieces_; }
  /// The phase in which piece `index` runs.
  int phase_of(size_t index) const { return phase_of_[index]; }
  int phases() const { return static_cast<int>(phases_.size()); }
  /// From where on gradients are final after a phase: later ones write none of them.
  int64_t ready_after(int phase) const { return phases_[static_cast<size_t>(phase)].ready; }

  /// Runs everything; blocks from `active` on are left out. Of a backward pass, tells what is ready
  /// (BackwardOutput) behind each phase that made more so. Does not allocate. `stopwatch` may be
  /// null.
  void execute(ThreadPool& threads, const Run& run, int active, Stopwatch* stopwatch) const;

 private:
  struct Phase {
    std::vector<size_t> whole;   // whole and deferred pieces: their tasks come first
    std::vector<size_t> blocks;  // block pieces in order
    int whole_tasks = 0;
    int64_t ready = 0;
    bool tells = false;  // less was ready before
  };
  void run_task(const Phase& phase, const Run& run, int task, int slot, Stopwatch* stopwatch) const;
  void run_piece(size_t index, const Run& run, const Task& task, Stopwatch* stopwatch) const;
  void place(size_t piece, Phase& phase, int number);
  void find_ready();

  Blocks blocks_;
  std::vector<Piece> pieces_;
  std::vector<int> phase_of_;
  std::vector<Phase> phases_;
};

}  // namespace outrigger::nn::cpu
