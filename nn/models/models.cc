#include "nn/models.h"

#include <algorithm>
#include <array>

#include "common/error.h"
#include "nn/models/builder.h"

namespace outrigger::nn {
namespace {

struct Model {
  const char* name;
  void (*build)(GraphBuilder&, const ModelOptions&);
  bool chooses_embedding;  // the size of its embedding is an option
};

constexpr std::array kModels{
    Model{"lenet5", models::build_lenet5, false},
    Model{"resnet18", models::build_resnet18, false},
    Model{"resnet50", models::build_resnet50, false},
    Model{"iresnet18", models::build_iresnet18, true},
    Model{"iresnet50", models::build_iresnet50, true},
    Model{"mobilefacenet", models::build_mobilefacenet, true},
};

// Below it, a map of the last layers has no place left that sees more than padding.
constexpr int64_t kLeastSide = 16;

void check(const Model& model, const ModelOptions& options) {
  const std::string name = model.name;
  if (options.height < kLeastSide || options.width < kLeastSide) {
    throw InvalidInput("model " + name + ": images of " + std::to_string(options.height) + "x" +
                       std::to_string(options.width) + " are too small; each side needs at least " +
                       std::to_string(kLeastSide) + " pixels");
  }
  if (options.channels < 1)
    throw InvalidInput("model " + name + ": images need at least one channel");
  if (options.head != HeadKind::kNone && options.classes < 2) {
    throw InvalidInput("model " + name +
                       ": it needs at least two classes to tell apart, and there are " +
                       std::to_string(options.classes));
  }
  if (options.embedding && !model.chooses_embedding) {
    throw InvalidInput("model " + name +
                       ": the size of its embedding is fixed; leave out embedding " +
                       std::to_string(*options.embedding));
  }
  if (options.embedding.value_or(1) < 1) {
    throw InvalidInput("model " + name + ": an embedding needs at least one number, and is " +
                       std::to_string(*options.embedding));
  }
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : kModels) names.emplace_back(model.name);
  return names;
}

Graph build_model(const ModelOptions& options) {
  const auto found = std::find_if(kModels.begin(), kModels.end(),
                                  [&](const Model& model) { return options.name == model.name; });
  if (found == kModels.end()) {
    std::string names;
    for (const Model& model : kModels) names += std::string(names.empty() ? "" : ", ") + model.name;
    throw InvalidInput("there is no model \"" + options.name + "\"; there are " + names);
  }
  check(*found, options);
  GraphBuilder builder(options.name, {options.height, options.width, options.channels});
  found->build(builder, options);
  if (options.freeze_until) builder.freeze_until(*options.freeze_until);
  return builder.build();
}

namespace models {

void add_symmetric_normalize(GraphBuilder& builder, const ModelOptions& options) {
  const std::vector<float> half(static_cast<size_t>(options.channels), 0.5f);
  builder.add("normalize", Normalize{half, half});
}

void add_head(GraphBuilder& builder, const ModelOptions& options, const std::string& linear_name,
              float dropout) {
  if (options.head == HeadKind::kNone) return;
  if (dropout > 0) builder.add("dropout", Dropout{dropout});
  if (options.head == HeadKind::kLinear) {
    builder.add(linear_name, Linear{options.classes, true});
  } else {
    builder.add("head", ArcFace{options.classes, options.arcface_margin, options.arcface_scale});
  }
}

}  // namespace models
}  // namespace outrigger::nn
