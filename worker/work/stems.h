#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/thread_pool.h"
#include "feed/messages.h"
#include "nn/graph.h"
#include "nn/program.h"

namespace outrigger::worker {

/// The stems a worker can run: programs by cut, weights by version. What it holds memory for is one
/// cut, and while a plan changes two: see keep_cuts(). Not thread-safe.
class Stems {
 public:
  /// References must outlive this. `options` gives precision, batch and seed of every program.
  Stems(const nn::Graph& graph, const nn::Backend& backend, nn::ProgramOptions options,
        ThreadPool& threads)
      : graph_(graph), backend_(backend), options_(std::move(options)), threads_(threads) {}

  void add(feed::StemWeights weights);
  void drop_before(uint64_t oldest_version);
  /// Forgets what was made for other cuts than these and the one that ran last; no tape of them is
  /// borrowed. Made again when they are wanted again.
  void keep_cuts(const std::set<int32_t>& cuts);
  bool has(uint64_t version, int32_t cut) const;
  /// Compiled at the first call for a cut.
  const nn::Program& program(int32_t cut);
  /// The program's weights of a version that is here; packed at the first call.
  const nn::Weights& weights(uint64_t version, int32_t cut);
  std::unique_ptr<nn::Tape> borrow_tape(int32_t cut);
  /// Makes something of what as many micro-batches at once will need at a cut, before they do: its
  /// program, or a tape. False: all of it is there.
  bool prepare(int32_t cut, size_t micro_batches);
  void give_back_tape(int32_t cut, std::unique_ptr<nn::Tape> tape);

 private:
  /// What is made for one cut; goes in this order, the program last.
  struct Made {
    std::unique_ptr<nn::Program> program;
    std::vector<std::unique_ptr<nn::Tape>> free_tapes = {};
    size_t tapes = 0;  // these, and those that are lent
    std::vector<std::unique_ptr<nn::Weights>> free_weights = {};
  };
  struct Version {
    feed::StemWeights raw;
    std::map<int32_t, std::unique_ptr<nn::Weights>> packed;
  };
  Made& made(int32_t cut);
  std::unique_ptr<nn::Tape> new_tape(Made& of_cut);

  const nn::Graph& graph_;
  const nn::Backend& backend_;
  const nn::ProgramOptions options_;
  ThreadPool& threads_;
  std::map<int32_t, Made> made_;
  int32_t last_cut_ = 0;  // that ran
  std::map<uint64_t, Version> versions_;
};

}  // namespace outrigger::worker
