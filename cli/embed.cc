#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/embedding_file.h"
#include "cli/model_options.h"
#include "cli/option_checks.h"
#include "common/error.h"
#include "data/names.h"
#include "training/evaluation/labelled_rows.h"

namespace outrigger::cli {
namespace {

namespace fs = std::filesystem;

struct EmbedOptions {
  ModelArguments model;
  std::vector<std::string> images;
  std::string out;
  bool raw = false;
};

/// All images that the arguments mean: files as given, folders with all that is in them, sorted.
std::vector<std::string> expand(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    if (!fs::exists(argument)) throw InvalidInput(argument + ": there is no such file or folder");
    if (!fs::is_directory(argument)) {
      files.push_back(argument);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(
             argument, fs::directory_options::follow_directory_symlink)) {
      if (entry.is_regular_file() && data::is_image_name(entry.path().filename().string())) {
        found.push_back(entry.path().string());
      }
    }
    if (found.empty()) throw InvalidInput(argument + ": there is no image in this folder");
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

void embed(const EmbedOptions& options) {
  if (!options.out.empty()) check_embedding_file(options.out);
  const std::vector<std::string> files = expand(options.images);
  const TrainedModel model = options.model.load();
  ImageList images{.root = "/", .samples = {}};
  for (const std::string& file : files) {
    data::Sample sample;
    // Where ".." stands behind a link, the text alone names another file.
    sample.path = fs::canonical(file).string();
    images.samples.push_back(std::move(sample));
  }
  const ImageOutputs outputs = run_with_progress(options.model, model, images);
  const std::vector<float> values =
      options.raw ? outputs.embeddings : training::normalized(outputs.embeddings, outputs.features);
  EmbeddingTable table{values, outputs.features, {}};
  for (const size_t image : outputs.images) table.paths.push_back(files[image]);
  if (options.out.empty()) return write_json_lines(table, std::cout);
  write_embeddings(table, options.out);
  std::cout << table.paths.size() << " embeddings of " << table.features << " numbers in "
            << options.out << "\n";
}

}  // namespace

void add_embed(CLI::App& program) {
  CLI::App* command = program.add_subcommand("embed",
                                             "Write a trained model's embeddings of images: "
                                             "vectors that are near to each other for one person");
  const auto options = std::make_shared<EmbedOptions>();
  add_model_options(*command, options->model);
  command->add_option("images", options->images, "Images, or folders of images")->required();
  command
      ->add_option("-o,--out", options->out,
                   "File to write: .safetensors, .npy (paths beside it) or .jsonl (default: "
                   "JSON lines to the output)")
      ->check(not_empty());
  command->add_flag("--raw", options->raw, "As the network gives them, not scaled to length 1");
  command->footer(
      "The product of two embeddings is the cosine of the angle between them; `outrigger evaluate` "
      "prints the value\n"
      "above which two photos are best called one person.\n\n"
      "Example: outrigger embed runs/faces photos/ -o photos.safetensors");
  command->callback([options] { embed(*options); });
}

}  // namespace outrigger::cli
