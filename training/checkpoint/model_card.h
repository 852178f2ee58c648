#pragma once

#include <map>
#include <string>
#include <vector>

#include "nn/graph.h"
#include "nn/models.h"

namespace outrigger::training {

/// What a weights file says of itself, so that whoever has the file alone can use the model: how to
/// build it, and what its outputs mean.
struct ModelCard {
  nn::ModelOptions model;  // of a network in layers: no name, only the input's size and the classes
  std::string
      job;  // of a network in layers, which has no name: the TrainingJob as JSON; else empty
  std::vector<std::string> classes;  // names by label; empty where unknown
};

/// The card as text by name, for the metadata of a safetensors file. The keys: "model" (or "job"),
/// "height", "width", "channels", "classes", "head" (linear, arcface, none), "embedding",
/// "arcfaceMargin", "arcfaceScale", "classNames" (JSON array); and for readers other than us "mean"
/// and "deviation" (JSON arrays: (pixel / 255 - mean) / deviation, per channel).
std::map<std::string, std::string> to_metadata(const ModelCard& card, const nn::Graph& graph);

/// Throws InvalidInput that names the file (`source`) and the key that is absent or not what it
/// must be.
ModelCard card_of(const std::map<std::string, std::string>& metadata, const std::string& source);

}  // namespace outrigger::training
