#include "cli/trained_model.h"

#include <charconv>

#include "api/parse.h"
#include "common/error.h"
#include "nn/safetensors.h"
#include "nn/weights_file.h"
#include "worker/job.h"

namespace outrigger::cli {
namespace {

namespace fs = std::filesystem;

/// The newest `step-N` under a directory that has weights.
std::optional<fs::path> newest_step(const fs::path& directory) {
  std::optional<fs::path> newest;
  uint64_t newest_step = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    uint64_t step = 0;
    if (!name.starts_with("step-") || !fs::exists(entry.path() / "state.json")) continue;
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + 5, end, step) != std::from_chars_result{end, std::errc()})
      continue;  // a copy, like step-99-old
    if (newest && step < newest_step) continue;
    newest = entry.path();
    newest_step = step;
  }
  return newest;
}

std::optional<fs::path> weights_in(const fs::path& directory) {
  for (const char* name : {"averaged.safetensors", "weights.safetensors"}) {
    if (fs::exists(directory / name)) return directory / name;
  }
  return std::nullopt;
}

training::ModelCard card_from(const ModelHints& hints, const fs::path& file) {
  if (!hints.name) {
    throw InvalidInput(
        file.string() +
        " does not say which model it is of: name it with --model and give its --size");
  }
  training::ModelCard card;
  card.model.name = *hints.name;
  card.model.height = hints.height;
  card.model.width = hints.width;
  card.model.channels = hints.channels;
  card.model.embedding = hints.embedding;
  card.model.head = nn::HeadKind::kNone;
  return card;
}

/// Of a network in layers the card holds the job that spells them out.
nn::Graph build_graph(const training::ModelCard& card, const fs::path& file) {
  if (card.job.empty()) return nn::build_model(card.model);
  const api::ParseResult parsed = api::parse_training_job(card.job);
  if (!parsed.errors.empty()) {
    throw InvalidInput(file.string() + ": the job that it carries cannot be read: " +
                       api::to_string(parsed.errors.front()));
  }
  return worker::build_graph(parsed.job, card.model.classes);
}

}  // namespace

fs::path find_weights(const fs::path& path) {
  if (!fs::exists(path)) throw InvalidInput(path.string() + ": there is no such file or directory");
  if (!fs::is_directory(path)) return path;
  if (const auto here = weights_in(path)) return *here;
  if (const auto best = weights_in(path / "best")) return *best;
  if (const auto step = newest_step(path)) {
    if (const auto newest = weights_in(*step)) return *newest;
  }
  throw InvalidInput(path.string() +
                     " holds no weights: looked for averaged.safetensors and weights.safetensors "
                     "in it, in best/ and in "
                     "its newest step-N/");
}

TrainedModel load_trained_model(const fs::path& path, const ModelHints& hints) {
  const fs::path file = find_weights(path);
  const auto metadata = nn::SafetensorsReader(file).metadata();
  const bool says = metadata.contains("model") || metadata.contains("job");
  TrainedModel model;
  model.file = file;
  model.card = says ? training::card_of(metadata, file.string()) : card_from(hints, file);
  model.graph = build_graph(model.card, file);
  if (hints.name && *hints.name != model.graph.name()) {
    throw InvalidInput(file.string() + " is of model " + model.graph.name() + ", not of " +
                       *hints.name);
  }
  model.parameters.resize(static_cast<size_t>(model.graph.parameter_count()));
  model.buffers.resize(static_cast<size_t>(model.graph.buffer_count()));
  const nn::LoadWeightsOptions options{.replace_head = !model.has_head()};
  nn::load_weights(file, model.graph, options, model.parameters, model.buffers);
  return model;
}

}  // namespace outrigger::cli
