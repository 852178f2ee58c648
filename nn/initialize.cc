#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/error.h"
#include "common/hash.h"
#include "common/random.h"
#include "nn/models.h"

namespace outrigger::nn {
namespace {

RandomStream stream_of(uint64_t seed, const std::string& name) {
  const Sha256 digest = sha256(std::as_bytes(std::span(name)));
  uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof key);
  return RandomStream(seed, RandomUse::kInitialWeights, key);
}

void fill_normal(RandomStream random, double deviation, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(deviation * random.normal());
}

void fill_uniform(RandomStream random, double bound, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(bound * (2.0 * random.uniform() - 1.0));
}

// ArcFace's class vectors, as in insightface.
constexpr double kClassDeviation = 0.01;
// PyTorch's default for PReLU.
constexpr float kSlope = 0.25f;

void fill_weight(const Layer& layer, const Parameter& parameter, RandomStream random,
                 std::span<float> values) {
  const Shape& shape = parameter.shape;
  if (const auto* convolution = std::get_if<Convolution>(&layer.operation)) {
    // He et al., "Delving deep into rectifiers", ICCV 2015, with the fan out.
    const int64_t fan_out = shape[0] * shape[2] * shape[3] / convolution->groups;
    fill_normal(random, std::sqrt(2.0 / static_cast<double>(fan_out)), values);
  } else if (std::holds_alternative<ArcFace>(layer.operation)) {
    fill_normal(random, kClassDeviation, values);
  } else {
    fill_uniform(random, 1.0 / std::sqrt(static_cast<double>(shape[1])), values);
  }
}

void fill_parameter(const Graph& graph, const Parameter& parameter, uint64_t seed,
                    std::span<float> values) {
  const Layer& layer = graph.layers()[static_cast<size_t>(parameter.layer)];
  const RandomStream random = stream_of(seed, parameter.name);
  switch (parameter.kind) {
    case ParameterKind::kWeight:
      fill_weight(layer, parameter, random, values);
      break;
    case ParameterKind::kBias: {
      // The weight, which lies before its bias, has the inputs of one output in all its sizes but
      // the first.
      const Shape& weight = graph.parameters()[static_cast<size_t>(layer.parameters[0])].shape;
      const int64_t inputs = element_count(weight) / weight[0];
      fill_uniform(random, 1.0 / std::sqrt(static_cast<double>(inputs)), values);
      break;
    }
    case ParameterKind::kNormScale:
      std::fill(values.begin(), values.end(), 1.0f);
      break;
    case ParameterKind::kNormShift:
      std::fill(values.begin(), values.end(), 0.0f);
      break;
    case ParameterKind::kSlope:
      std::fill(values.begin(), values.end(), kSlope);
      break;
  }
}

bool lies_in(Segment segment, int layer) { return layer >= segment.begin && layer < segment.end; }

/// A piece's part of the arena of a segment that it lies in.
std::span<float> part_of_segment(std::span<float> arena, Range segment, Range piece) {
  return part_of(arena, {piece.offset - segment.offset, piece.size});
}

}  // namespace

void initialize(const Graph& graph, uint64_t seed, std::span<float> parameters,
                std::span<float> buffers) {
  initialize(graph, graph.whole(), seed, parameters, buffers);
}

void initialize(const Graph& graph, Segment segment, uint64_t seed, std::span<float> parameters,
                std::span<float> buffers) {
  const Range all_parameters = graph.parameter_range(segment);
  const Range all_buffers = graph.buffer_range(segment);
  ensure(std::ssize(parameters) == all_parameters.size && std::ssize(buffers) == all_buffers.size,
         "arenas have the segment's sizes");
  for (const Parameter& parameter : graph.parameters()) {
    if (lies_in(segment, parameter.layer))
      fill_parameter(graph, parameter, seed,
                     part_of_segment(parameters, all_parameters, parameter.range));
  }
  for (const NormBuffer& buffer : graph.buffers()) {
    if (!lies_in(segment, buffer.layer)) continue;
    const auto both = part_of_segment(buffers, all_buffers, buffer.range);
    const auto channels = static_cast<size_t>(buffer.channels);
    std::fill_n(both.begin(), channels, 0.0f);   // mean
    std::fill_n(both.rbegin(), channels, 1.0f);  // variance
  }
}

}  // namespace outrigger::nn
