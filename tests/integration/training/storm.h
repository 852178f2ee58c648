#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "tests/integration/training/training_run.h"

namespace outrigger::integration {

/// What happens to a worker, and where.
struct Fault {
  /// A fault point of the worker (worker/fault.h); "any moment": from outside, some time after its
  /// start.
  std::string point;
  enum class Kind : uint8_t {
    kKill,   // SIGKILL
    kStop,   // SIGSTOP; it never comes back
    kPause,  // SIGSTOP, and SIGCONT when its work was leased to others
    kLeave,  // SIGTERM: it says that it leaves
  } kind = Kind::kKill;
  auto operator<=>(const Fault&) const =
      default;  // NOLINT(modernize-use-nullptr): its own rewriting
};
std::string to_string(const Fault& fault);
std::vector<Fault> every_kind_at(const std::vector<std::string>& points);

/// Starts workers of a run, each with a fault, until every fault asked for has struck and the
/// server has told that workers were lost in every state of the ledger. Counts what it provoked.
class Storm {
 public:
  Storm(TrainingRun& run, std::vector<Fault> faults, uint64_t seed);

  /// Goes on until all is provoked and `least` faults have struck, or until the time is over or the
  /// server ends.
  void rage(size_t least, std::chrono::seconds limit);
  /// What was not provoked, in words.
  std::vector<std::string> missing() const;

  size_t struck() const;
  const std::map<Fault, size_t>& counts() const { return counts_; }
  /// Items that workers held when they were lost or left, as the server tells: by state and kind.
  using Held = std::map<std::pair<std::string, Fault::Kind>, size_t>;
  Held held() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Victim {
    Fault fault;
    size_t index = 0;
    Time started;
    Time strike;  // when it gets help
    bool stopped = false;
    Time stopped_at;
    bool over = false;
  };

  void start_one();
  void look_at(Victim& victim, Time now);
  /// Does what a fault needs from outside, once its time has come.
  void help(Victim& victim, Time now);
  void note(Victim& victim);
  bool has_struck(const Victim& victim) const;

  TrainingRun& run_;
  const std::vector<Fault> faults_;
  RandomStream random_;
  std::filesystem::path worse_data_;  // of workers whose reads are to fail
  std::deque<Fault> queue_;
  std::vector<Victim> victims_;
  std::map<size_t, Fault> by_index_;
  std::map<Fault, size_t> counts_;
};

}  // namespace outrigger::integration
