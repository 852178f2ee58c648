#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/trained_model.h"
#include "data/sample.h"

namespace outrigger::cli {

struct RunOptions {
  int threads = 1;
  int64_t batch = 32;     // images that go through the network at once
  bool classify = false;  // run the head too, where the model has one
  /// Called with the number of images done, after each batch.
  std::function<void(size_t)> progress = {};
};

/// What a network says of images: a row per image that could be decoded.
struct ImageOutputs {
  std::vector<float> embeddings;  // {rows, features}
  int64_t features = 0;
  std::vector<int32_t> named;       // per row: the class of the largest logit, the first of equals;
                                    // empty where the head was not run
  std::vector<size_t> images;       // per row: which image, ascending
  std::vector<std::string> broken;  // what was left out, each with the reason
};

/// Runs images through a model as evaluation sees them (resized to cover, centre crop; running
/// averages). Images that cannot be decoded are left out. Of logits no more than a batch is held:
/// of many people they are more than all else. Throws IoError for an image that cannot be read.
ImageOutputs run_images(const TrainedModel& model, const std::filesystem::path& root,
                        const std::vector<data::Sample>& images, const RunOptions& options);

}  // namespace outrigger::cli
