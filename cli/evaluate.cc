#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/commands.h"
#include "cli/evaluation.h"
#include "cli/model_options.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "common/log.h"
#include "data/image_folder.h"
#include "data/web_dataset.h"

namespace outrigger::cli {
namespace {

using nlohmann::ordered_json;

/// One of either kind in each of the ten folds.
constexpr int64_t kFewestPairs = 20;
constexpr int64_t kMostPairs = 1'000'000'000;

struct EvaluateOptions {
  ModelArguments model;
  std::string data;
  std::string gallery;
  training::PairOptions pairs;
  std::string format = "text";
};

struct LoadedSet {
  data::Dataset dataset;
  ImageOutputs outputs;
  EvaluatedSet view() const { return {dataset, outputs}; }
};

ImageOutputs run_set(const EvaluateOptions& options, const TrainedModel& model,
                     const std::string& folder, const data::Dataset& dataset, bool classify) {
  ImageList images{.root = folder, .samples = {}, .classify = classify};
  for (uint32_t i = 0; i < dataset.size(); ++i) images.samples.push_back(dataset.at(i));
  return run_with_progress(options.model, model, images);
}

/// Whether it has shards and no folders, of which each would be a person.
bool holds_shards(const std::filesystem::path& folder) {
  bool shards = false;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with('.')) continue;
    std::error_code ignored;
    if (at->is_directory(ignored)) return false;
    shards |= at->path().extension() == ".tar";
  }
  return shards;
}

data::Dataset list_people(const std::filesystem::path& folder) {
  return holds_shards(folder) ? data::list_web_dataset(folder, "")
                              : data::list_image_folder(folder);
}

LoadedSet run_probes(const EvaluateOptions& options, const TrainedModel& model) {
  LoadedSet set{list_people(options.data), {}};
  const bool classify = labels_in_model(model, set.dataset).value.has_value();
  set.outputs = run_set(options, model, options.data, set.dataset, classify);
  return set;
}

LoadedSet run_gallery(const EvaluateOptions& options, const TrainedModel& model) {
  LoadedSet set{list_people(options.gallery), {}};
  set.outputs = run_set(options, model, options.gallery, set.dataset, false);
  return set;
}

template <typename T, typename Fill>
ordered_json measure_json(const Measure<T>& measure, const Fill& fill) {
  return measure.value ? ordered_json(fill(*measure.value))
                       : ordered_json{{"absent", measure.why_not}};
}

ordered_json to_json(const Evaluation& e) {
  ordered_json document = {{"images", e.images}, {"people", e.people}, {"broken", e.broken}};
  document["top1"] = measure_json(e.top1, [](double value) {
    return ordered_json{{"accuracy", value}};
  });
  document["verification"] = measure_json(e.verification, [](const training::Verification& v) {
    ordered_json fields = {{"accuracy", v.accuracy},
                           {"deviation", v.deviation},
                           {"threshold", v.threshold},
                           {"pairs", v.pairs}};
    if (v.true_accept_rate) fields["trueAcceptRate"] = *v.true_accept_rate;
    return fields;
  });
  document["identification"] = measure_json(e.identification, [](const Identification& i) {
    return ordered_json{
        {"rank1", i.rank1}, {"known", i.known}, {"asked", i.asked}, {"notInGallery", i.strangers}};
  });
  return document;
}

std::string rank1_text(const Identification& i) {
  std::string text =
      fmt::format("{:.2f}% of {} photos found among {}", i.rank1 * 100, i.asked, i.known);
  if (i.strangers > 0)
    text += fmt::format("; left out: {} of people who are not in the gallery", i.strangers);
  return text;
}

void print(const TrainedModel& model, const Evaluation& e) {
  const auto line = [](const char* name, const std::string& text) {
    std::cout << fmt::format("{:<14}{}\n", name, text);
  };
  const auto absent = [](const std::string& why) { return "- (" + why + ")"; };
  const nn::ModelOptions& net = model.card.model;
  line("model", fmt::format("{} at {}x{}x{}, {}", model.graph.name(), net.height, net.width,
                            net.channels, model.file.string()));
  line("images", fmt::format("{} of {} people, {} left out", e.images, e.people, e.broken));
  line("top-1",
       e.top1.value ? fmt::format("{:.2f}%", *e.top1.value * 100) : absent(e.top1.why_not));
  if (const auto& v = e.verification.value) {
    std::string text = fmt::format("{:.2f}% +- {:.2f} over 10 folds of {} pairs, at cosine {:.3f}",
                                   v->accuracy * 100, v->deviation * 100, v->pairs, v->threshold);
    if (v->true_accept_rate)
      text += fmt::format("; {:.2f}% accepted at 0.1% false", *v->true_accept_rate * 100);
    line("verification", text);
  } else {
    line("verification", absent(e.verification.why_not));
  }
  if (const auto& i = e.identification.value) {
    line("rank-1", rank1_text(*i));
  } else {
    line("rank-1", absent(e.identification.why_not));
  }
}

void evaluate(const EvaluateOptions& options) {
  const TrainedModel model = options.model.load();
  const LoadedSet probes = run_probes(options, model);
  std::optional<LoadedSet> gallery;
  if (!options.gallery.empty()) gallery = run_gallery(options, model);
  const auto gallery_view = gallery ? std::optional<EvaluatedSet>(gallery->view()) : std::nullopt;
  const Evaluation result = evaluate_outputs(model, probes.view(), gallery_view, options.pairs);
  if (options.format == "text") return print(model, result);
  ordered_json document = {{"model", model.graph.name()}, {"weights", model.file.string()}};
  document.update(to_json(result));
  std::cout << json_text(document, 2) << "\n";
}

}  // namespace

void add_evaluate(CLI::App& program) {
  CLI::App* command = program.add_subcommand("evaluate",
                                             "Tell how good a trained model is on a folder of "
                                             "photos: top-1, verification, identification");
  const auto options = std::make_shared<EvaluateOptions>();
  add_model_options(*command, options->model);
  command
      ->add_option("--data", options->data,
                   "Folder with a sub-folder of photos per person, or with shards of a WebDataset "
                   "(*.tar), whose people are their numbers")
      ->required()
      ->check(not_empty());
  command
      ->add_option("--gallery", options->gallery,
                   "Photos of known people, in which identification looks (default: each person's "
                   "first photo)")
      ->check(not_empty());
  command->add_option("--pairs", options->pairs.pairs, "Pairs to draw for verification, at most")
      ->check(CLI::Range(kFewestPairs, kMostPairs))
      ->capture_default_str();
  command->add_option("--seed", options->pairs.seed, "Seed of the pairs")->capture_default_str();
  command->add_option("-o,--format", options->format, "How to print the result")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "top-1         part of the photos that the model's own classifier gives to the right "
      "person;\n"
      "              only for people that it was trained on\n"
      "verification  part of the pairs rightly called one person or two (10 folds, as on LFW)\n"
      "rank-1        part of the photos whose nearest known photo is of the same person; only of\n"
      "              people who are in the gallery\n\n"
      "Examples: outrigger evaluate runs/faces --data faces/val\n"
      "          outrigger evaluate w.safetensors --data test --gallery train -o json\n"
      "          outrigger evaluate --weights torch.safetensors --model resnet18 --size 112x112x3 "
      "--data faces/val");
  command->callback([options] { evaluate(*options); });
}

}  // namespace outrigger::cli
