#include "training/checkpoint/arena_file.h"

#include <vector>

#include "common/error.h"
#include "nn/safetensors.h"

namespace outrigger::training {
namespace {}  // namespace

void save_arena(const std::filesystem::path& path, const nn::Graph& graph,
                std::span<const float> arena, const std::map<std::string, std::string>& metadata) {
  std::vector<nn::PlannedTensor> plan;
  for (const nn::Parameter& parameter : graph.parameters()) {
    plan.push_back({parameter.name, ElementType::kFloat32, parameter.shape});
  }
  nn::SafetensorsWriter writer(path, std::move(plan), metadata);
  for (const nn::Parameter& parameter : graph.parameters())
    writer.write(std::as_bytes(nn::part_of(arena, parameter.range)));
  writer.finish();
}

void load_arena(const std::filesystem::path& path, const nn::Graph& graph, std::span<float> arena) {
  const nn::SafetensorsReader reader(path);
  for (const nn::Parameter& parameter : graph.parameters()) {
    const nn::StoredTensor* stored = reader.find(parameter.name);
    if (stored == nullptr) throw InvalidInput(path.string() + " has no tensor " + parameter.name);
    if (stored->shape != parameter.shape) {
      throw InvalidInput(path.string() + ": tensor " + parameter.name + " is " +
                         to_string(stored->shape) + " where the model has " +
                         to_string(parameter.shape));
    }
    reader.read(*stored, nn::part_of(arena, parameter.range));
  }
}

}  // namespace outrigger::training
