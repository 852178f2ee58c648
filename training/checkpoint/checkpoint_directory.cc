#include "training/checkpoint/checkpoint_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "common/error.h"
#include "common/file.h"
#include "common/hash.h"
#include "nn/weights_file.h"
#include "training/checkpoint/arena_file.h"

namespace outrigger::training {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr const char* kManifest = "state.json";
constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kAveraged = "averaged.safetensors";
/// A checkpoint within: what was being evaluated.
constexpr const char* kEvaluating = "evaluating";

std::string former_name(uint64_t version) {
  return "former-" + std::to_string(version) + ".safetensors";
}

std::string hash_of(std::string_view content) {
  return to_hex(sha256(std::as_bytes(std::span(content))));
}

/// Read in pieces: a model's file beside its arrays would be memory that nobody has planned for.
std::string hash_of_file(const fs::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw_errno("opening " + path.string(), errno);
  Sha256Stream hash;
  std::vector<std::byte> piece(size_t{1} << 20);
  while (true) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("reading " + path.string(), errno);
    if (got == 0) return to_hex(hash.finish());
    hash.add(std::span(piece).first(static_cast<size_t>(got)));
  }
}

void make_directory(const fs::path& path) {
  std::error_code error;
  if (!fs::create_directory(path, error))
    throw IoError("making " + path.string() + ": " + error.message());
}

/// The manifest's own hash is of its text without that member; nlohmann's output is canonical
/// (sorted, shortest numbers).
std::string manifest_hash(json manifest) {
  manifest.erase("sha256");
  return hash_of(manifest.dump());
}

json fields_of(const FoundPlan& plan) {
  return {{"cut", plan.cut},
          {"stemsAway", plan.stems_away},
          {"localInputs", plan.local_inputs},
          {"microBatches", plan.micro_batches}};
}

/// Nothing where it is none, or of another version's form: it only spares the planner some steps.
std::optional<FoundPlan> plan_from(const json& manifest) {
  const json fields = manifest.contains("plan") ? manifest["plan"] : json();
  const auto is_count = [&](const char* name) {
    return fields.contains(name) && fields[name].is_number_unsigned();
  };
  const bool known = fields.is_object() && fields.contains("cut") && fields["cut"].is_string() &&
                     is_count("stemsAway") && is_count("localInputs") && is_count("microBatches");
  if (!known) return std::nullopt;
  return FoundPlan{.cut = fields["cut"],
                   .stems_away = fields["stemsAway"],
                   .local_inputs = fields["localInputs"],
                   .micro_batches = fields["microBatches"]};
}

json manifest_of(const fs::path& path, const TrainingState& state, const nn::Graph& graph,
                 const CheckpointMetadata& metadata) {
  json files = json::object();
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_directory()) continue;  // it has a manifest of its own
    files[entry.path().filename().string()] = {{"bytes", entry.file_size()},
                                               {"sha256", hash_of_file(entry.path())}};
  }
  std::vector<uint64_t> former;
  for (const auto& entry : state.former_parameters) former.push_back(entry.first);
  json manifest = {{"format", kFormat},
                   {"graph", graph.name()},
                   {"step", state.step},
                   {"incarnation", state.incarnation},
                   {"badSamples", state.bad_samples},
                   {"bestStep", state.best_step},
                   {"bestMetric", state.best_metric},
                   {"evaluationsWithoutGain", state.evaluations_without_gain},
                   {"evaluatedStep", state.evaluated_step},
                   {"evaluating", state.evaluating != nullptr},
                   {"lossScale", state.loss_scale.value},
                   {"lossScaleGoodSteps", state.loss_scale.good_steps},
                   {"formerVersions", former},
                   {"metadata", metadata},
                   {"files", files}};
  if (state.plan) manifest["plan"] = fields_of(*state.plan);
  manifest["sha256"] = manifest_hash(manifest);
  return manifest;
}

/// Throws IoError unless state.json is whole.
json read_manifest(const fs::path& path) {
  const fs::path file = path / kManifest;
  if (!fs::exists(file))
    throw IoError(path.string() + " has no " + kManifest + ": it was not finished");
  json manifest = json::parse(read_file(file), nullptr, false);
  const bool whole = manifest.is_object() && manifest.contains("sha256") &&
                     manifest["sha256"] == manifest_hash(manifest);
  if (!whole) throw IoError(file.string() + " is cut short or changed");
  if (const auto format = manifest.value("format", 0); format > kFormat) {
    throw InvalidInput(path.string() + " has format " + std::to_string(format) +
                       ", of a later version; this one reads up to " + std::to_string(kFormat));
  }
  return manifest;
}

/// Throws IoError unless every file is there as the manifest says.
void verify_files(const fs::path& path, const json& manifest) {
  for (const auto& [name, expected] : manifest.at("files").items()) {
    const fs::path file = path / name;
    if (!fs::exists(file)) throw IoError(file.string() + " is missing");
    const auto bytes = expected.at("bytes").get<uint64_t>();
    if (const auto found = fs::file_size(file); found != bytes) {
      throw IoError(file.string() + " has " + std::to_string(found) + " bytes instead of " +
                    std::to_string(bytes));
    }
    if (hash_of_file(file) != expected.at("sha256").get<std::string>()) {
      throw IoError(file.string() + " is not what was written: its SHA-256 differs");
    }
  }
}

TrainingState read_state(const fs::path& path, const json& manifest, const nn::Graph& graph) {
  TrainingState state;
  state.step = manifest.at("step");
  state.incarnation = manifest.at("incarnation");
  state.bad_samples = manifest.at("badSamples").get<std::vector<uint32_t>>();
  state.best_step = manifest.at("bestStep");
  state.best_metric =
      manifest.at("bestMetric").is_number() ? manifest.at("bestMetric").get<double>() : 0;
  state.evaluations_without_gain = manifest.at("evaluationsWithoutGain");
  state.evaluated_step = manifest.value("evaluatedStep", static_cast<int64_t>(state.step));

  state.loss_scale.value = manifest.value("lossScale", state.loss_scale.value);
  state.loss_scale.good_steps = manifest.value("lossScaleGoodSteps", state.loss_scale.good_steps);
  state.plan = plan_from(manifest);

  const auto parameters = static_cast<size_t>(graph.parameter_count());
  state.parameters.resize(parameters);
  state.buffers.resize(static_cast<size_t>(graph.buffer_count()));
  nn::load_weights(path / kWeights, graph, {}, state.parameters, state.buffers);
  state.momentum.resize(parameters);
  load_arena(path / kOptimizer, graph, state.momentum);
  if (manifest.at("files").contains(kAveraged)) {
    state.averaged.resize(parameters);
    std::vector<float> same_buffers(state.buffers.size());
    nn::load_weights(path / kAveraged, graph, {}, state.averaged, same_buffers);
  }
  for (const uint64_t version : manifest.at("formerVersions").get<std::vector<uint64_t>>()) {
    auto& former = state.former_parameters[version];
    former.resize(parameters);
    load_arena(path / former_name(version), graph, former);
  }
  if (manifest.value("evaluating", false)) {
    state.evaluating =
        std::make_shared<TrainingState>(read_checkpoint_files(path / kEvaluating, graph).state);
  }
  return state;
}

}  // namespace

void write_checkpoint_files(const fs::path& path, const TrainingState& state,
                            const nn::Graph& graph, const CheckpointMetadata& metadata,
                            const std::function<void(std::string_view)>& reached) {
  const auto save_model = [&](const char* name, std::span<const float> parameters) {
    const nn::SavedWeights weights{parameters, state.buffers, static_cast<int64_t>(state.step)};
    nn::save_weights(path / name, graph, graph.whole(), weights, metadata);
    reached("wrote " + std::string(name));
  };
  save_model(kWeights, state.parameters);
  save_arena(path / kOptimizer, graph, state.momentum, metadata);
  reached("wrote " + std::string(kOptimizer));
  if (!state.averaged.empty()) save_model(kAveraged, state.averaged);
  for (const auto& [version, parameters] : state.former_parameters) {
    save_arena(path / former_name(version), graph, parameters, metadata);
    reached("wrote " + former_name(version));
  }
  if (state.evaluating != nullptr) {
    make_directory(path / kEvaluating);
    write_checkpoint_files(path / kEvaluating, *state.evaluating, graph, metadata, reached);
  }
  const json manifest = manifest_of(path, state, graph, metadata);
  write_file_atomically(path / kManifest, manifest.dump(2));
  sync_directory(path);
  reached("wrote " + std::string(kManifest));
}

Checkpoint read_checkpoint_files(const fs::path& path, const nn::Graph& graph) {
  try {
    const json manifest = read_manifest(path);
    verify_files(path, manifest);
    return {read_state(path, manifest, graph), manifest.at("metadata").get<CheckpointMetadata>(),
            path};
  } catch (const json::exception& error) {
    throw IoError((path / kManifest).string() + " lacks what a checkpoint needs: " + error.what());
  } catch (const fs::filesystem_error& error) {
    throw IoError("reading the checkpoint " + path.string() + ": " + error.what());
  }
}

}  // namespace outrigger::training
