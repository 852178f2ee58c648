#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/image_runner.h"
#include "cli/trained_model.h"

namespace CLI {
class App;
}

namespace outrigger::cli {

/// Options that every command that uses a trained model has.
struct ModelArguments {
  std::string weights;
  ModelHints hints;
  std::string size;  // "112x96x3"; empty: not given
  int threads = 1;
  int64_t batch = 32;

  TrainedModel load() const;
};

/// Adds the positional RUN and the options; `arguments` outlives the program's parsing.
void add_model_options(CLI::App& command, ModelArguments& arguments);

/// Images below a folder, and whether the head is to be run on them too.
struct ImageList {
  std::filesystem::path root;
  std::vector<data::Sample> samples;
  bool classify = false;
};

/// Runs the images with a progress line on standard error, and warns of each image that is left
/// out. Throws InvalidInput where none could be decoded.
ImageOutputs run_with_progress(const ModelArguments& arguments, const TrainedModel& model,
                               const ImageList& images);

}  // namespace outrigger::cli
