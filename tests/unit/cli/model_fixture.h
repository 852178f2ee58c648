#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/file.h"
#include "nn/weights_file.h"
#include "training/checkpoint/model_card.h"

namespace outrigger::cli {

/// A lenet5 for 32x32 grey images of three people, written where a test wants it.
class ModelTest : public testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return temporary_.path() / name; }

  training::ModelCard card() const {
    training::ModelCard card;
    card.model.name = "lenet5";
    card.model.height = 32;
    card.model.width = 32;
    card.model.channels = 1;
    card.model.classes = 3;
    card.classes = {"ann", "bob", "eve"};
    return card;
  }

  /// Weights from `seed`; with or without what they say of themselves.
  void write_weights(const std::filesystem::path& file, bool with_card = true,
                     uint64_t seed = 1) const {
    std::filesystem::create_directories(file.parent_path());
    const nn::Graph graph = nn::build_model(card().model);
    std::vector<float> parameters(static_cast<size_t>(graph.parameter_count()));
    std::vector<float> buffers(static_cast<size_t>(graph.buffer_count()));
    nn::initialize(graph, seed, parameters, buffers);
    const auto metadata =
        with_card ? training::to_metadata(card(), graph) : std::map<std::string, std::string>{};
    nn::save_weights(file, graph, graph.whole(), {.parameters = parameters, .buffers = buffers},
                     metadata);
  }

  /// A PGM of 40x40 with a gradient that `look` turns.
  void write_image(const std::filesystem::path& file, int look) const {
    std::filesystem::create_directories(file.parent_path());
    std::string pixels;
    for (int y = 0; y < 40; ++y) {
      for (int x = 0; x < 40; ++x) pixels += static_cast<char>((x * look + y * (7 - look)) % 256);
    }
    std::ofstream(file, std::ios::binary) << "P5 40 40 255\n" << pixels;
  }

 private:
  TemporaryDirectory temporary_;
};

}  // namespace outrigger::cli
