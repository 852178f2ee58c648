#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "nn/graph.h"
#include "training/checkpoint/checkpoint.h"

/// The files inside one checkpoint's directory. Where directories come from and go is
/// CheckpointStore's.
namespace outrigger::training {

/// Writes all files of a checkpoint into the empty directory `path`, the manifest (state.json)
/// last, and syncs them. `reached` is called after each file. Throws IoError.
void write_checkpoint_files(const std::filesystem::path& path, const TrainingState& state,
                            const nn::Graph& graph, const CheckpointMetadata& metadata,
                            const std::function<void(std::string_view)>& reached);

/// Checks every file against the manifest and reads them. Throws IoError that says what is missing,
/// cut short or changed; InvalidInput when the checkpoint is whole but not of `graph`, or of a
/// later version of this program.
Checkpoint read_checkpoint_files(const std::filesystem::path& path, const nn::Graph& graph);

}  // namespace outrigger::training
