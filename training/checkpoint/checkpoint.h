#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/exit_codes.h"
#include "nn/graph.h"
#include "training/state.h"

namespace outrigger::training {

/// A later attempt of the same job writes to this directory: whoever catches this must end without
/// writing more.
class Superseded : public api::Failure {
 public:
  explicit Superseded(const std::string& what) : Failure(api::ExitCode::kStaleAttempt, what) {}
};

/// Text by name that travels with the weights (model, input size, classes …) in every safetensors
/// file of a checkpoint.
using CheckpointMetadata = std::map<std::string, std::string>;

struct Checkpoint {
  TrainingState state;
  CheckpointMetadata metadata;
  std::filesystem::path path;
};

/// The newest whole checkpoint under `directory`, or nothing where there is none at all. What was
/// cut short or damaged is passed over with a warning that names what is wrong. Writes nothing.
/// Throws IoError where there are some and none is whole, or nobody can tell: whoever then began
/// anew would lose a run to a file system that is ill. InvalidInput that names the tensor when a
/// whole checkpoint does not fit `graph`: it is another model's.
std::optional<Checkpoint> load_newest_checkpoint(const std::filesystem::path& directory,
                                                 const nn::Graph& graph);

/// The checkpoint in exactly this directory ("…/step-12", "…/best"). Throws IoError that names what
/// is wrong with it, InvalidInput when it does not fit `graph`.
Checkpoint load_checkpoint(const std::filesystem::path& path, const nn::Graph& graph);

struct CheckpointOptions {
  int keep = 3;  // step directories to keep, the newest; at least 1. The best is kept besides
  int64_t attempt =
      0;  // the launcher's count of starts of this job; the highest that wrote owns the directory
  /// Called with a word at each point of a save after which a crash leaves something else: for
  /// tests of crashes.
  std::function<void(std::string_view)> at_fault_point = {};
};

/// Writes the checkpoints of one run: `<directory>/step-N/` and `<directory>/best/`, each with
///   weights.safetensors    parameters and running averages, by PyTorch's names
///   optimizer.safetensors  momentum, by the parameters' names
///   averaged.safetensors   averaged parameters and running averages, where the job averages
///   former-V.safetensors   parameters of earlier versions, where staleness needs them
///   state.json             everything else, and size and SHA-256 of the files above; written last
/// A checkpoint is written to a hidden directory beside, synced and renamed, so a crash at any
/// moment leaves the former ones whole. Not thread-safe. One store at a time may write to a
/// directory; a later attempt shuts out the earlier.
class CheckpointStore {
 public:
  /// Makes the directory where absent, claims it for the attempt, and removes what crashed saves
  /// left. Throws Superseded when a later attempt has claimed it, InvalidInput for keep < 1,
  /// IoError.
  CheckpointStore(std::filesystem::path directory, CheckpointOptions options);

  /// Writes step-<state.step> and removes the oldest beyond `keep`, and those before it that
  /// load_newest passed over. A checkpoint of that step that is there is replaced. Throws
  /// Superseded; IoError when it cannot be written (disk full): then nothing is left of it and the
  /// former checkpoints are as they were.
  void save(const TrainingState& state, const nn::Graph& graph,
            const CheckpointMetadata& metadata = {});

  /// The same into `best`, in place of the former best.
  void save_best(const TrainingState& state, const nn::Graph& graph,
                 const CheckpointMetadata& metadata = {});

  /// As load_newest_checkpoint. What it passes over takes no good checkpoint's place from then on.
  std::optional<Checkpoint> load_newest(const nn::Graph& graph);

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path step_path(uint64_t step) const;
  std::filesystem::path best_path() const;
  /// Steps that have a directory, whole or not, ascending. IoError.
  std::vector<uint64_t> steps() const;

 private:
  void replace(const std::string& name, const TrainingState& state, const nn::Graph& graph,
               const CheckpointMetadata& metadata);
  void check_attempt() const;
  void prune(uint64_t newest);
  void reached(std::string_view fault_point) const;

  std::filesystem::path directory_;
  CheckpointOptions options_;
  std::set<uint64_t> damaged_;  // steps that load_newest passed over
};

}  // namespace outrigger::training
