#pragma once

#include <optional>
#include <string>

#include "nn/graph_builder.h"
#include "nn/models.h"

/// What the model files share. Each model's function builds all of one network.
namespace outrigger::nn::models {

/// Numbers in the embedding of a face recogniser, unless its options say otherwise.
inline constexpr int64_t kDefaultEmbedding = 512;

void build_lenet5(GraphBuilder& builder, const ModelOptions& options);
void build_resnet18(GraphBuilder& builder, const ModelOptions& options);
void build_resnet50(GraphBuilder& builder, const ModelOptions& options);
void build_iresnet18(GraphBuilder& builder, const ModelOptions& options);
void build_iresnet50(GraphBuilder& builder, const ModelOptions& options);
void build_mobilefacenet(GraphBuilder& builder, const ModelOptions& options);

/// The first layer, "normalize", to [-1, 1].
void add_symmetric_normalize(GraphBuilder& builder, const ModelOptions& options);

/// Ends a graph whose last layer gives the embedding: nothing, an ArcFace "head", or a linear layer
/// `linear_name` behind `dropout`.
void add_head(GraphBuilder& builder, const ModelOptions& options, const std::string& linear_name,
              float dropout);

}  // namespace outrigger::nn::models
