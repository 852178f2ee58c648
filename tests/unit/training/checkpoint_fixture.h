#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/hash.h"
#include "common/random.h"
#include "nn/graph_builder.h"
#include "training/checkpoint/checkpoint.h"

namespace outrigger::training {

inline nn::Graph make_graph(int64_t classes) {
  nn::GraphBuilder builder("tiny", {8, 8, 1});
  builder.add("normalize", nn::Normalize{{0.5f}, {0.5f}});
  builder.add("conv1", nn::Convolution{.out_channels = 4, .kernel = 3, .padding = 1});
  builder.add("bn1", nn::BatchNorm{});
  builder.add("relu", nn::Relu{});
  builder.add("pool", nn::GlobalAveragePool{});
  builder.add("fc", nn::Linear{.out_features = classes});
  return builder.build();
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

inline bool equal(const TrainingState& a, const TrainingState& b) {
  const bool numbers = a.step == b.step && a.incarnation == b.incarnation &&
                       a.bad_samples == b.bad_samples && a.best_step == b.best_step &&
                       a.best_metric == b.best_metric &&
                       a.evaluations_without_gain == b.evaluations_without_gain &&
                       a.evaluated_step == b.evaluated_step && a.plan == b.plan &&
                       a.loss_scale.value == b.loss_scale.value &&
                       a.loss_scale.good_steps == b.loss_scale.good_steps &&
                       (a.evaluating == nullptr) == (b.evaluating == nullptr) &&
                       (a.evaluating == nullptr || equal(*a.evaluating, *b.evaluating));
  return numbers && same_bits(a.parameters, b.parameters) && same_bits(a.momentum, b.momentum) &&
         same_bits(a.buffers, b.buffers) && same_bits(a.averaged, b.averaged) &&
         std::equal(a.former_parameters.begin(), a.former_parameters.end(),
                    b.former_parameters.begin(), b.former_parameters.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && same_bits(x.second, y.second);
                    });
}

/// A directory for the checkpoints of a tiny net.
class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    store_ = std::make_unique<CheckpointStore>(directory(), CheckpointOptions{});
  }

  CheckpointStore& store() { return *store_; }
  std::filesystem::path directory() const { return temporary_.path() / "job"; }

  /// A state with something in every field, a pure function of its arguments.
  TrainingState state_at(uint64_t step, uint32_t variant = 0) const {
    uint32_t field = variant * 16;
    const auto random_floats = [&](int64_t count) {
      RandomStream random(5, RandomUse::kSyntheticData, step, field++);
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values) value = random.normal();
      return values;
    };
    TrainingState state;
    state.step = step;
    state.incarnation = 3;
    state.parameters = random_floats(graph_.parameter_count());
    state.momentum = random_floats(graph_.parameter_count());
    state.buffers = random_floats(graph_.buffer_count());
    state.averaged = random_floats(graph_.parameter_count());
    state.former_parameters[step - 1] = random_floats(graph_.parameter_count());
    state.bad_samples = {2, 4000000000u};
    state.best_metric = 0.1 + 0.2;  // not representable in few digits
    state.best_step = static_cast<int64_t>(step) - 1;
    state.evaluations_without_gain = 4;
    state.evaluated_step = static_cast<int64_t>(step) - 2;
    state.loss_scale = {512.0f, 77};
    state.plan = {{.cut = "layer1", .stems_away = 6, .local_inputs = 1, .micro_batches = 8}};
    return state;
  }

  /// Names in the directory, hidden ones too, sorted.
  std::vector<std::string> entries() const { return names_in(directory()); }
  std::vector<std::string> files_in(const std::string& checkpoint) const {
    return names_in(directory() / checkpoint);
  }

  /// Changes a manifest as its writer could have written it: with the right hash.
  template <typename Change>
  void rewrite_manifest(uint64_t step, const Change& change) {
    const auto path = store().step_path(step) / "state.json";
    nlohmann::json manifest = nlohmann::json::parse(read_file(path));
    manifest.erase("sha256");
    change(manifest);
    const std::string text = manifest.dump();
    manifest["sha256"] = to_hex(sha256(std::as_bytes(std::span(text))));
    write_file_atomically(path, manifest.dump());
  }

  const nn::Graph graph_ = make_graph(10);

 private:
  static std::vector<std::string> names_in(const std::filesystem::path& path) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryDirectory temporary_;
  std::unique_ptr<CheckpointStore> store_;
};

}  // namespace outrigger::training
