#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "nn/graph.h"
#include "nn/program.h"
#include "training/trainer/reducer.h"

/// Ranks that are threads, and a backend that sees what leaves them during a backward pass.
namespace outrigger {

constexpr uint32_t kRanks = 2;
constexpr int64_t kSamples = 4;
constexpr uint32_t kBatches = 2;
constexpr uint64_t kSteps = 3;
constexpr uint64_t kLosingStep = 1;
constexpr size_t kBucket = 64;

/// A branch, norms, slopes of their own, biases, and classes at the end.
nn::Graph overlap_graph();

/// How many all-reduces the gradients are that lie behind a place.
struct Buckets {
  int64_t all = 0;     // floats
  int64_t bucket = 1;  // floats of each
  int64_t least = 0;   // what lies before has to wait for something else
  int64_t behind(int64_t first) const;
};

/// Sums in the order of the ranks, until one of them leaves.
class Meeting {
 public:
  explicit Meeting(uint32_t ranks) : theirs_(ranks), begun_(ranks), done_(ranks) {}
  /// Throws IoError once it has broken up.
  void sum(uint32_t rank, std::span<float> values);
  void break_up();
  /// Of a rank: sums that it began and, of those, has.
  int64_t begun(uint32_t rank);
  int64_t done(uint32_t rank);
  /// Until so many are done, it has broken up, or ten seconds have passed.
  void wait_for(uint32_t rank, int64_t done);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::span<float>> theirs_;
  std::vector<int64_t> begun_, done_;
  std::vector<float> sum_;
  size_t arrived_ = 0, taken_ = 0;
  uint64_t round_ = 0;
  bool broken_up_ = false;
};

class MeetingReducer final : public training::Reducer {
 public:
  MeetingReducer(Meeting& meeting, uint32_t rank) : meeting_(meeting), rank_(rank) {}
  uint32_t rank() const override { return rank_; }
  uint32_t replicas() const override { return kRanks; }
  void all_reduce(std::span<float> values) override { meeting_.sum(rank_, values); }
  void all_reduce_bfloat16(std::span<float> values) override;
  void broadcast(std::span<std::byte>) override;

 private:
  Meeting& meeting_;
  const uint32_t rank_;
};

enum class Backward : uint8_t {
  kTellsNothing,  // as a backend may
  kWaitsForSums,  // a pass stands still until what it told of has been summed over the ranks
};

/// A backward pass that told somebody of its gradients.
struct WatchedPass {
  int64_t could_leave = 0;  // all-reduces
  int64_t left = 0;         // when it was over
  int64_t left_early = 0;   // while some of its gradients were still to come
};

/// Another backend, one rank's. References must outlive its programs.
class ToldBackend final : public nn::Backend {
 public:
  ToldBackend(const nn::Backend& backend, Backward backward, Meeting& meeting, uint32_t rank,
              Buckets buckets, std::vector<WatchedPass>& passes)
      : backend_(backend),
        backward_(backward),
        meeting_(meeting),
        rank_(rank),
        buckets_(buckets),
        passes_(passes) {}
  std::string name() const override { return "told"; }
  std::unique_ptr<nn::Program> compile(const nn::Graph& graph, const nn::ProgramOptions& options,
                                       ThreadPool& threads) const override;

 private:
  const nn::Backend& backend_;
  const Backward backward_;
  Meeting& meeting_;
  const uint32_t rank_;
  const Buckets buckets_;
  std::vector<WatchedPass>& passes_;
};

}  // namespace outrigger
